#!/usr/bin/env python3
"""Measures the compile time of README's five lines: tools/compile_time.py [--against TREE] [--runs N].

Prints the median CPU time of g++ -O2, minus the time for the standard headers that leat.hpp includes:
header-only, with LEAT_COMPILED, and header-only from another clone. The variants run alternately.
"""
import argparse
import os
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """\
#include <leat/leat.hpp>
#include <iostream>
int main() {
%s
  return offset && count ? 0 : 1;
}
"""


def five_lines():
    """The first C++ block of README.md that publishes."""
    for code in re.findall(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.S):
        if "publish(" in code:
            return PROGRAM % code
    raise SystemExit("README.md has no C++ that publishes")


def compile_seconds(source, tree, *flags):
    before = os.times()
    subprocess.run(["g++", "-std=c++20", "-O2", "-w", f"-I{tree}/include", *flags, "-c", source,
                    "-o", os.devnull], check=True)
    after = os.times()
    return (after.children_user - before.children_user +
            after.children_system - before.children_system)


def standard_headers(tree, flags, directory):
    """A program that includes all standard headers that leat.hpp includes directly or indirectly."""
    program = directory / "leat.cpp"
    program.write_text("#include <leat/leat.hpp>\n")
    done = subprocess.run(["g++", "-std=c++20", f"-I{tree}/include", *flags, "-M", program],
                          check=True, capture_output=True, text=True)
    own = [Path(name) for name in re.findall(r"\S+\.hpp", done.stdout) if "/leat/" in name]
    names = {name for path in own
             for name in re.findall(r"^#include <([^>]+)>", path.read_text(), re.M)}
    result = directory / f"standard{len(names)}.cpp"
    result.write_text("".join(f"#include <{name}>\n" for name in sorted(names | {"iostream"})))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--against", type=Path, help="another clone, in turns with this one")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        program = directory / "five_lines.cpp"
        program.write_text(five_lines())
        trees = {"header-only": (ROOT, []), "compiled": (ROOT, ["-DLEAT_COMPILED"])}
        if arguments.against:
            trees[f"header-only, {arguments.against}"] = (arguments.against.resolve(), [])
        seconds = {name: [] for name in trees}
        for _ in range(arguments.runs):
            for name, (tree, flags) in trees.items():
                headers = standard_headers(tree, flags, directory)
                seconds[name].append(compile_seconds(program, tree, *flags) -
                                     compile_seconds(headers, tree))
        base = statistics.median(list(seconds.values())[-1])
        for name, values in seconds.items():
            median = statistics.median(values)
            print(f"{median:6.2f} s  {median / base:5.2f} x  {name}")


if __name__ == "__main__":
    main()
