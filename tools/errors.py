#!/usr/bin/env python3
"""Writes the error codes of spec/errors.csv into every file that has them: tools/errors.py [--check].

In such a file they stand between a line with `From spec/errors.csv, by tools/errors.py: begin` and one with
`From spec/errors.csv: end`. --check changes nothing, and fails if a file has other codes than the list.
"""
import csv
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "spec" / "errors.csv"


def codes():
    """(number, name, sentence) of each code, in order. The numbers never change, so none is left out."""
    with open(LIST, encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    if any(None in row for row in read):
        raise SystemExit(f"{LIST}: a sentence with a comma must stand in quotes")
    rows = [(int(row["number"]), row["name"], row["sentence"]) for row in read]
    if [number for number, _, _ in rows] != list(range(len(rows))):
        raise SystemExit(f"{LIST}: the numbers must be 0, 1, 2, …")
    return rows


def for_c(number, name, sentence):
    name = "LEAT_OK" if number == 0 else f"LEAT_ERR_{name.upper()}"
    return f"#define {name} {number}".ljust(38) + f" // {sentence}"


def for_sentences(_number, _name, sentence):
    return f'    "{sentence}",'


def for_names(number, name, sentence):
    return f'    {{Errc::{name}, "{name}"}},'


def for_go(number, name, sentence):
    word = "OK" if number == 0 else name.title().replace("_", "").replace("Io", "IO")
    error = f"// Err{word} is an error with this code.\nvar Err{word}" if number else "var _"
    return f'const Code{word} Code = {number} // {sentence}\n\n{error} = named(Code{word}, "{name}")\n'


def for_rust_c(number, name, sentence):
    name = "LEAT_OK" if number == 0 else f"LEAT_ERR_{name.upper()}"
    return f"pub const {name}: i32 = {number}; // {sentence}"


def for_rust(number, name, sentence):
    if number == 0:
        return "    // 0 is no error."
    return f'    {"".join(word.capitalize() for word in name.split("_"))} = {number}, "{name}", "{sentence}";'


def for_java(number, name, sentence):
    return f"  /** {sentence[0].upper()}{sentence[1:]}. */\n  {name.upper()}({number}),"


# File -> what makes a line of it, or several.
FILES = {"include/leat/base/result_impl.hpp": for_sentences, "src/capi/leat.h": for_c,
         "src/capi/errors.cpp": for_names, "clients/go/codes.go": for_go,
         "clients/java/src/io/leat/ErrorCode.java": for_java,
         "clients/rust/leat-sys/src/errors.rs": for_rust_c, "clients/rust/leat/src/code.rs": for_rust}


def with_codes(text, make_line):
    lines = "".join(make_line(*code) + "\n" for code in codes())
    pattern = re.compile(r"(by tools/errors\.py: begin\n).*?(^[^\n]*From spec/errors\.csv: end)", re.S | re.M)
    text, places = pattern.subn(lambda found: found[1] + lines + found[2], text)
    if places != 1:
        raise SystemExit(f"{places} places for the codes")
    return text


def main():
    wrong = []
    for name, make_line in FILES.items():
        path = ROOT / name
        old = path.read_text(encoding="utf-8")
        new = with_codes(old, make_line)
        if old != new:
            wrong.append(name)
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    if wrong:
        print("changed:" if "--check" not in sys.argv else "not as spec/errors.csv:", *wrong)
    return 1 if wrong and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
