#!/usr/bin/env python3
"""The house rules, run as a test: tools/tidy.py [TREE]. Prints each problem as path:line: text.

Checks include directions, head comments, lengths of files and functions, white space, that named paths
exist, that no retired word comes back, and that every named pair of atomic operations (Edge) has two
ends, an explanation and an interleaving test.
tests/system/test_tidy.py has an example of every problem it must catch.
"""
import ast
import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

# The rooms of include/leat, lowest first: each may include itself and those before it.
LAYERS = ["base", "os", "format", "store", "log", "group", "compat", "admin"]
# Public headers are at the top of include/leat, above the rooms, but each belongs to a room.
PUBLIC = {"fwd.hpp": "base", "result.hpp": "base", "deadline.hpp": "base", "record.hpp": "format", "topic_id.hpp": "base",
          "publisher.hpp": "log", "subscriber.hpp": "log", "topic.hpp": "log",
          "member.hpp": "group", "group.hpp": "group", "leat.hpp": "group", "broker.hpp": "group", "admin.hpp": "admin"}
# Folders that use the library as its users do: public headers only, and of base and os what leat/os/os.hpp lists.
PROGRAMS = ("src/cli", "src/tool", "src/broker", "src/serve", "src/lightq")
# Folder of the executables' sources -> the other folders that it may include.
ROOMS = {
    "src/outcome": set(),
    "src/tool": {"src/outcome"},
    "src/description": set(),
    "src/capi": {"src/description"},
    "src/cli": {"src/description", "src/outcome", "src/tool", "src/lightq/client"},
    "src/lightq/wire": set(),  # Bytes that the broker and its clients share.
    "src/lightq/client": {"src/lightq/wire", "src/outcome"},
    "src/lightq/api": {"src/lightq/client", "src/outcome"},
    "src/lightq/tool": {"src/lightq/client", "src/outcome", "src/tool"},
    "src/lightq/server": {"src/broker", "src/lightq/wire", "src/outcome"},
    "src/broker": {"src/outcome"},  # Each protocol has a folder, and knows the broker, not the other way round.
    "src/serve": {"src/broker", "src/lightq/server", "src/outcome", "src/tool"},
    "bench/harness": {"bench"},
    "bench/floors": {"bench", "bench/harness"},
    "bench/leat": {"bench", "bench/harness", "src/tool"},
    "bench/broker": {"bench", "bench/harness", "src/tool", "src/lightq/server"},
    "bench/output": {"bench", "bench/harness"},
    "bench/clients": {"bench", "bench/harness", "bench/output"},
    "bench/ipc": {"bench", "bench/harness", "bench/floors", "bench/leat", "bench/output"},
    "bench/report": {"bench", "bench/ipc", "bench/output"},
    "bench/peers": {"bench", "bench/harness"},
    "bench/commands": {"bench", "bench/harness", "bench/floors", "bench/leat", "bench/broker",
                       "bench/output", "bench/ipc", "bench/report", "bench/clients", "src/tool"},
    "bench": {"bench/commands", "src/tool"},  # What lies in bench itself; must come last.
}

# Where retired words stay: history, and bytes that were written.
HISTORY = ("docs/decisions/", "CHANGELOG.md", "bench/results/", "tests/fixtures/", "tests/fuzz/corpus/")
WORD = re.compile(r"(?<![\w\\])[A-Za-z_]\w*")
DECISION = re.compile(r"\b\d{4}-[a-z0-9-]+")  # The name of one, which may have a retired word.

CODE = {".hpp", ".cpp", ".py", ".sh", ".cmake", ".rs"}
TEXT = CODE | {".h", ".c", ".map", ".md", ".txt", ".json", ".in", ".csv", ".toml", ".yml", ".yaml"}
TEXT_NAMES = {"Makefile", "run", ".clang-format", ".clang-tidy", ".gitignore"}
MAX_LINES = 600
MAX_FUNCTION_LINES = 70

# Directories of a particular machine. Split into pieces so that this file passes its own check.
MACHINE_PATHS = re.compile(r"(?<![\w.$}])/(?:" + "work|root|home/\\w+|Users/\\w+|tmp/build" + r")/")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# The library's own namespace, not that of another library: CLI::detail.
DETAIL = re.compile(r"(?<![\w:])(?:leat::)?detail::|namespace (?:leat::)?detail\b")
# A path in documentation: in backticks, or the target of a link that is not a URL.
BACKTICKED = re.compile(r"`([^`\s]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
SOURCE_NAME = re.compile(r"^[\w.*/-]+\.(?:hpp|cpp|py|sh|md|cmake|json|csv)$")
DOC_IN_CODE = re.compile(r'\b(docs/[\w./-]+\.md)(?:, "([^"]+)")?')


def layer_of(path):
    """The room of include/leat that a header belongs to, or None."""
    return path.parts[2] if len(path.parts) > 3 else PUBLIC.get(path.name)


def room_of(path):
    """The key of ROOMS that a file belongs to, or None."""
    for room in ROOMS:
        if path.is_relative_to(room):
            return room
    return None


def is_program(path):
    return path.suffix in (".hpp", ".cpp") and any(path.is_relative_to(folder) for folder in PROGRAMS)


def retired_words(file):
    """Pairs of globs and a regular expression; none if there is no such file."""
    for line in read(file).splitlines() if file.exists() else []:
        if line and not line.startswith("#"):
            globs, regex = line.split(": ", 1)
            yield globs.split(","), regex


class Tidy:
    def __init__(self, tree):
        self.tree = tree
        self.problems = []
        self.files = sorted(list_files(tree))
        self.text = {path: read(tree / path) for path in self.files if is_text(path)}
        self.retired = list(retired_words(tree / "tools/retired.txt"))

    def problem(self, path, line, text):
        self.problems.append(f"{path}:{line}: {text}")

    def check(self):
        for path, text in self.text.items():
            lines = text.split("\n")
            self.check_white_space(path, text, lines)
            self.check_machine_paths(path, lines)
            self.check_retired(path, lines)
            if path.suffix in CODE:
                self.check_length(path, lines)
            if path.suffix in (".hpp", ".cpp"):
                self.check_includes(path, lines)
                self.check_docs_in_code(path, lines)
                self.check_relaxed(path, text)
            if path.suffix in (".hpp", ".cpp", ".rs"):
                self.check_functions(path, lines)
            if path.suffix == ".py":
                self.check_python_functions(path, text)
            if path.suffix == ".hpp":
                self.check_head(path, lines)
            if path.parts[0] == "tests" and path.suffix == ".cpp" and not lines[0].startswith("//"):
                self.problem(path, 1, "a test starts with what would break in the world if it failed")
            if path.parts[:2] == ("include", "leat"):
                self.check_core(path, text)
            if path.parts[0] == "examples" and path.suffix == ".cpp":
                self.check_public_only(path, lines, "an example uses the public interface only")
            if is_program(path):
                self.check_public_only(path, lines, "programs use the public interface and leat/os/os.hpp")
            if path.suffix == ".md":
                self.check_paths_in_docs(path, lines)
        for path in self.files:
            if {"common", "utils", "util"} & set(path.parts[:-1]):
                self.problem(path, 1, "no common/ or utils/: a helper lives with its user")
        self.check_edges()

    # --- One file ----------------------------------------------------------------------------

    def check_white_space(self, path, text, lines):
        for number, line in enumerate(lines, 1):
            if "\t" in line and path.name != "Makefile":
                self.problem(path, number, "tab")
            if line != line.rstrip():
                self.problem(path, number, "space at the end of the line")
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            self.problem(path, len(lines), "must end with exactly one newline")

    def check_machine_paths(self, path, lines):
        for number, line in enumerate(lines, 1):
            found = MACHINE_PATHS.search(line)
            if found:
                self.problem(path, number, f"path of one machine: {found.group(0)}")

    def check_retired(self, path, lines):
        if str(path).startswith((*HISTORY, "docs/glossary.md", "tools/retired.txt", "tools/tidy.py", "tests/system/test_tidy.py")):
            return
        here = [regex for globs, regex in self.retired if any(fnmatch.fnmatchcase(str(path), one) for one in globs)]
        retired = re.compile("|".join(here) or r"(?!)")
        for number, line in enumerate([path.stem, *lines]):  # Line 0: the file's name.
            for word in WORD.findall(DECISION.sub("", line)):
                if retired.fullmatch(word):
                    self.problem(path, number, f"retired word: {word} (docs/glossary.md has the field's)")

    def check_length(self, path, lines):
        if len(lines) - 1 > MAX_LINES:
            self.problem(path, len(lines) - 1, f"over {MAX_LINES} lines: look for the seam")

    def check_functions(self, path, lines):
        """A function begins at the last line before its end that is not indented further."""
        for end, line in enumerate(lines):
            if line not in ("}", "    }" if path.suffix == ".rs" else "  }"):
                continue
            inside = ("#", line[:-1] + " ")
            begin = end - 1
            while begin > 0 and (not lines[begin] or lines[begin].startswith(inside)):
                begin -= 1
            if path.suffix == ".rs" and lines[begin].lstrip().startswith(")"):  # The end of a signature of many lines.
                begin -= 1
                while begin > 0 and lines[begin].startswith(inside):
                    begin -= 1
            is_function = path.suffix != ".rs" or re.search(r"\bfn ", lines[begin])  # There, all of an `impl` is within.
            if is_function and end - begin + 1 > MAX_FUNCTION_LINES:
                self.problem(path, begin + 1, f"over {MAX_FUNCTION_LINES} lines: make it several functions")

    def check_python_functions(self, path, text):
        for node in ast.walk(ast.parse(text)):
            is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            if is_function and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES:
                self.problem(path, node.lineno, f"over {MAX_FUNCTION_LINES} lines: make it several functions")

    def check_relaxed(self, path, text):
        if path.name == "atomic.hpp" or path.parts[0] not in ("include", "src", "bench"):
            return
        for number, line in enumerate(without_comments_and_strings(text).split("\n"), 1):
            if re.search(r"\b(load|store)_relaxed\(", line):
                self.problem(path, number, "say why it needs no order: …_relaxed<Why::…>(…)")

    def check_head(self, path, lines):
        if not lines[0].startswith("//"):
            self.problem(path, 1, "a header starts with a comment: what it is for, how to use it")
        if "#pragma once" not in lines:
            self.problem(path, 1, "no #pragma once")

    def check_docs_in_code(self, path, lines):
        """Comments refer to docs/name.md, "Section": both must exist."""
        for number, line in enumerate(lines, 1):
            for name, section in DOC_IN_CODE.findall(line):
                text = self.text.get(Path(name))
                if text is None:
                    self.problem(path, number, f"no such file: {name}")
                elif section and not re.search(rf"^#+ .*{re.escape(section)}", text, re.M | re.I):
                    self.problem(path, number, f'{name} has no section "{section}"')

    def check_public_only(self, path, lines, rule):
        for number, line in enumerate(lines, 1):
            if DETAIL.search(line):
                self.problem(path, number, rule)

    def check_core(self, path, text):
        lines = text.split("\n")
        code = without_comments_and_strings(text)
        for number, line in enumerate(code.split("\n"), 1):
            # std::atomic, in memory of one process: the reason is a comment there, or on a line just above.
            if "memory_order_relaxed" in line and path.name != "atomic.hpp":
                above = lines[max(0, number - 5):number - 1]
                if "//" not in lines[number - 1] and not any("// relaxed" in one for one in above):
                    self.problem(path, number, "say in a comment why it needs no order: // relaxed: …")
            # In any other file, a program of several sources would define it several times.
            if "LEAT_INLINE" in line and "#define" not in line and not path.stem.endswith("_impl"):
                self.problem(path, number, "LEAT_INLINE belongs into a file named ..._impl.hpp")
            if path.parts[2] == "compat":
                continue  # May throw, as the original interfaces do.
            if re.search(r"\bthrow\b", line):
                self.problem(path, number, "the core throws nothing")

    # --- Includes ----------------------------------------------------------------------------

    def check_includes(self, path, lines):
        for number, line in enumerate(lines, 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            reason = self.why_not_include(path, found.group(1) == '"', found.group(2))
            if reason:
                self.problem(path, number, f"may not include {found.group(2)}: {reason}")

    def why_not_include(self, path, quoted, name):
        """The reason why this file may not include that header, or None if it may."""
        target = self.resolve(path, quoted, name)
        if path.parts[:2] == ("include", "leat"):
            layer = layer_of(path)
            if layer not in LAYERS:
                return f"{path.name if len(path.parts) == 3 else layer} is in no room of tools/tidy.py"
            if target is None:
                return outside_core(layer, name)
            if target.parts[:2] != ("include", "leat"):
                return "the core includes only itself, the standard library and (os) Linux"
            other = layer_of(target)
            if other in LAYERS and LAYERS.index(other) > LAYERS.index(layer):
                return f"{layer} does not know {other}"
            if target.name.endswith("_impl.hpp") and layer_of(path) != other:
                return "only its own room includes what is compiled once"
        elif is_program(path) and target is not None and target.parts[:2] == ("include", "leat"):
            if layer_of(target) not in ("base", "os") and len(target.parts) > 3:
                return "programs include public headers, base and os only"
        elif room_of(path) and target is not None and target.parts[0] != "include":
            mine, other = room_of(path), room_of(target)
            if other not in ROOMS[mine] | {mine}:
                return f"{mine} does not know {other or target}"
        elif path.parts[0] == "examples" and target is not None:
            if target.parts[0] not in ("include", "examples"):
                return "not a public header"
        if quoted and target is None and name != "leat_version.hpp":
            return "no such file"
        return None

    def resolve(self, path, quoted, name):
        """The file in this tree that an #include refers to, or None."""
        bases = [Path("include")]
        if quoted:
            bases = [path.parent, Path("."), Path("include"), Path("src"), Path("tests")]
            bases += [Path(*path.parts[:2])]  # For example tests/unit, for files in its subfolders.
        for base in bases:
            candidate = Path(os.path.normpath(base / name))
            if candidate in self.text:
                return candidate
        return None

    # --- Paths in documentation ----------------------------------------------------------------

    def check_paths_in_docs(self, path, lines):
        fenced = False
        for number, line in enumerate(lines, 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            if fenced:
                continue
            for name in LINK.findall(line):
                target = name.split("#")[0]
                if "://" in name or name.startswith("mailto:") or not target:
                    continue
                if not self.exists(path.parent / target):
                    self.problem(path, number, f"link to nothing: {name}")
            for name in BACKTICKED.findall(line):
                if self.looks_like_path(name) and not self.named_path_exists(path, name):
                    self.problem(path, number, f"no such path: {name}")

    def looks_like_path(self, name):
        if not re.fullmatch(r"[\w.*/+-]+", name) or name.startswith(("/", "-", "*")):
            return False
        if name.split("/")[0] in ("build", "."):
            return False  # A build output.
        first_is_folder = "/" in name and any(f.parts[0] == name.split("/")[0]
                                              for f in self.files if len(f.parts) > 1)
        return first_is_folder or SOURCE_NAME.match(name) is not None

    def named_path_exists(self, path, name):
        """Relative to the root, to the document, or as in an #include: leat/…, log/…, bench/…."""
        bases = [Path("."), path.parent, Path("include"), Path("include/leat"), Path("src")]
        if any(self.exists(base / name) for base in bases):
            return True
        # A bare file name, in a text whose context gives the folder.
        return "/" not in name and any(f.match(name) for f in self.files)

    def exists(self, path):
        path = Path(os.path.normpath(path))
        if "*" in str(path):
            return any(file.match(str(path)) for file in self.files)
        return (self.tree / path).exists()

    # --- Named pairs of atomic operations --------------------------------------------------------

    def check_edges(self):
        """Each enumerator of Edge needs two ends in the core, an entry in the docs, and a test."""
        home = Path("include/leat/base/atomic.hpp")
        docs = Path("docs/internals/memory-model.md")
        core = [p for p in self.text if p.parts[:2] == ("include", "leat")]
        if not core:
            return
        declared = re.search(r"enum class Edge\b[^{]*\{(.*?)\}", self.text.get(home, ""), re.S)
        if not declared:
            self.problem(home, 1, "no `enum class Edge`: the named pairs of atomic operations")
            return
        body = without_comments_and_strings(declared.group(1))
        names = re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", body.strip())
        start = self.text[home][:declared.start(1)].count("\n") + 1
        if not names:
            self.problem(home, start, "enum class Edge is empty")
        tests = [text for path, text in self.text.items()
                 if path.parts[:2] == ("tests", "interleave") and path.suffix == ".cpp"]
        all_core = "\n".join(without_comments_and_strings(self.text[path]) for path in core)

        for name in names:
            offset = re.search(rf"\b{name}\b", declared.group(1)).start()
            line = start + declared.group(1)[:offset].count("\n")
            spelled = f"(?:{name}|{name.replace('_', '-')})"
            self.check_ends(home, line, name, all_core)
            if not re.search(rf"\[{spelled}\]|`{spelled}`", self.text.get(docs, "")):
                self.problem(home, line, f"edge {name} is not explained in {docs}")
            in_test = re.compile(rf'\bEdge::{name}\b|\[{spelled}\]|"{spelled}"')
            if not any(in_test.search(text) for text in tests):
                self.problem(home, line, f"edge {name} has no test in tests/interleave")

    def check_ends(self, home, line, name, all_core):
        """store_release<Edge::x>(…) is a writing end, load_acquire a reading end, others are both."""
        uses = re.findall(rf"(\w+)<(?:detail::)?Edge::{name}\b|\bEdge::{name}\b", all_core)
        if len(uses) < 2:
            self.problem(home, line, f"edge {name} has {len(uses)} of its two ends in include/leat")
        elif all(use.startswith(("load", "fence_acquire")) for use in uses):
            self.problem(home, line, f"edge {name} has reading ends only")
        elif all(use.startswith(("store", "fence_release")) for use in uses):
            self.problem(home, line, f"edge {name} has writing ends only")


def outside_core(layer, name):
    """The reason why a core header may not include this system header, or None."""
    if name.startswith("leat/"):
        return "no such file"
    if "/" not in name and not name.endswith(".h"):
        return None  # The standard library.
    if layer == "os" or name.endswith("intrin.h"):
        return None
    return "only include/leat/os calls Linux"


def without_comments_and_strings(text):
    """The code alone; line numbers stay the same."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group(0)), text)


def is_text(path):
    return path.suffix in TEXT or path.name in TEXT_NAMES


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def list_files(tree):
    """The files git would commit; without git, everything but build/."""
    if (tree / ".git").exists():
        command = ["git", "-c", f"safe.directory={tree}", "-C", str(tree), "ls-files", "-coz",
                   "--exclude-standard"]
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [Path(n) for n in names.split("\0") if n and (tree / n).is_file()]
    return [path.relative_to(tree) for path in tree.rglob("*")
            if path.is_file() and not {"build", "__pycache__"} & set(path.relative_to(tree).parts)]


def main():
    tree = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    tidy = Tidy(tree)
    tidy.check()
    for problem in tidy.problems:
        print(problem)
    print(f"tidy: {len(tidy.text)} files checked, {len(tidy.problems)} problems")
    return 1 if tidy.problems or not tidy.text else 0


if __name__ == "__main__":
    sys.exit(main())
