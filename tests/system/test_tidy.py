"""If these tests failed, tools/tidy.py would let a violation of the house rules pass. Each case breaks one
rule in a small clean tree."""
import subprocess
import sys
from pathlib import Path

import pytest

TIDY = Path(__file__).resolve().parents[2] / "tools" / "tidy.py"

HEAD = "// What it is for.\n#pragma once\n"
ATOMIC = HEAD + """\
enum class Edge {
  record_ready,  // payload -> reader
  sleeping,
};
"""
LOG = HEAD + """\
#include <cstdint>

#include "leat/base/atomic.hpp"
#include "leat/os/futex.hpp"

// docs/internals/memory-model.md, "Edges"
inline void both_ends() {
  store_release<Edge::record_ready>(word);
  load_acquire<Edge::record_ready>(word);
  fetch_or<Edge::sleeping>(word);
  load_seq_cst<Edge::sleeping>(word);
}
"""
CLEAN = {
    "README.md": "See `docs/internals/memory-model.md`, [the log](include/leat/log/log.hpp#x),\n"
                 "`log/log.hpp`, `tests/*/*.cpp`, `and/or`, `build/leat`, `/dev/shm`.\n",
    "docs/internals/memory-model.md": "# Edges\n\n[record-ready], `sleeping`\n",
    "include/leat/base/atomic.hpp": ATOMIC,
    "include/leat/os/futex.hpp": HEAD + "#include <linux/futex.h>\n",
    "include/leat/log/log.hpp": LOG,
    "include/leat/log/log_impl.hpp": HEAD + "LEAT_INLINE void f() {}\n",
    "include/leat/leat.hpp": HEAD + '#include "leat/log/log.hpp"\n',
    "include/leat/compat/fifo.hpp": HEAD + "#include <leat/leat.hpp>\nvoid f() { throw 1; }\n",
    "src/cli/main.cpp": '#include "tool/program.hpp"\n#include "leat_version.hpp"\n',
    "src/cli/args.hpp": HEAD + '#include <leat/leat.hpp>\n#include "leat/os/futex.hpp"\nint x = CLI::detail::y;\n',
    "src/tool/program.hpp": HEAD,
    "bench/main.cpp": '#include "ring.hpp"\n#include "bench/ring.hpp"\n#include "tool/program.hpp"\n',
    "bench/ring.hpp": HEAD,
    "tests/interleave/edges_test.cpp": '// Edges.\nweaken(Edge::record_ready); weaken("sleeping");\n',
    "examples/hello.cpp": "#include <leat/leat.hpp>\n",
    "tools/retired.txt": "# Words.\n*: \\w*Keeper\nsrc/*: look\n",
    "docs/decisions/0001-the-keeper.md": "Keeper\n",
    "docs/x.md": "[why](decisions/0001-the-keeper.md), and the look of it\n",
}


def tidy(directory, changes={}):
    """Runs tidy on the clean tree with `changes` (path -> text); returns (exit status, output)."""
    for path, text in {**CLEAN, **changes}.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    done = subprocess.run([sys.executable, TIDY, directory], capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout


def test_clean_tree_passes(tmp_path):
    status, output = tidy(tmp_path)
    assert (status, output) == (0, f"tidy: {len(CLEAN)} files checked, 0 problems\n")


def test_empty_tree_fails(tmp_path):
    done = subprocess.run([sys.executable, TIDY, tmp_path], capture_output=True, timeout=60)
    assert done.returncode == 1


MACHINE_PATH = "/" + "home/somebody/leat"

BAD = {
    "base includes log": (
        "include/leat/base/x.hpp", HEAD + "#include <leat/log/log.hpp>\n",
        "base does not know log"),
    "log includes leat.hpp": (
        "include/leat/log/x.hpp", HEAD + '#include "leat/leat.hpp"\n', "log does not know group"),
    "leat.hpp includes compat": (
        "include/leat/leat.hpp", HEAD + "#include <leat/compat/fifo.hpp>\n", "group does not know compat"),
    "relative include upward": (
        "include/leat/os/x.hpp", HEAD + '#include "../log/log.hpp"\n', "os does not know log"),
    "unknown layer": (
        "include/leat/extra/x.hpp", HEAD + "#include <vector>\n", "extra is in no room"),
    "linux outside os": (
        "include/leat/log/x.hpp", HEAD + "#include <sys/mman.h>\n", "only include/leat/os"),
    "library in the core": (
        "include/leat/base/x.hpp", HEAD + "#include <fmt/format.h>\n", "only include/leat/os"),
    "public header of no room": (
        "include/leat/more.hpp", HEAD + "#include <vector>\n", "more.hpp is in no room"),
    "test without a head": (
        "tests/unit/log/x_test.cpp", "#include <vector>\n", "a test starts with what"),
    "relaxed without a reason": (
        "include/leat/log/x.hpp", HEAD + "int f() { return load_relaxed(word); }\n", "say why"),
    "relaxed without a reason in a tool": (
        "src/cli/x.cpp", "int f() { return load_relaxed(word); }\n", "say why"),
    "std::atomic, relaxed without a reason": (
        "include/leat/compat/x.hpp", HEAD + "int f() { return x.load(std::memory_order_relaxed); }\n",
        "say in a comment why"),
    "compiled twice": (
        "include/leat/log/x.hpp", HEAD + "LEAT_INLINE void f() {}\n", "named ..._impl.hpp"),
    "includes another room's definitions": (
        "include/leat/group/x.hpp", HEAD + '#include "leat/log/log_impl.hpp"\n', "only its own room"),
    "core includes src": (
        "include/leat/log/x.hpp", HEAD + '#include "bench/ring.hpp"\n', "includes only itself"),
    "core throws": (
        "include/leat/log/x.hpp", HEAD + "void f() { throw 1; }\n", "throws nothing"),
    "cli includes bench": (
        "src/cli/x.cpp", '#include "bench/ring.hpp"\n', "src/cli does not know bench"),
    "bench includes cli": (
        "bench/x.cpp", '#include "cli/args.hpp"\n', "bench does not know src/cli"),
    "tool includes cli": (
        "src/tool/x.cpp", '#include "../cli/args.hpp"\n', "src/tool does not know src/cli"),
    "include of nothing": ("src/cli/x.cpp", '#include "nothing.hpp"\n', "no such file"),
    "example uses detail": (
        "examples/x.cpp", "leat::detail::load(x);\n", "public interface only"),
    "program uses detail": ("src/cli/x.cpp", "detail::load(x);\n", "programs use the public interface"),
    "program uses leat::detail": (
        "src/tool/x.cpp", "x = leat::detail::y;\n", "programs use the public interface"),
    "program uses all of detail": (
        "src/cli/x.cpp", "using namespace leat::detail;\n", "programs use the public interface"),
    "program includes log": (
        "src/cli/x.cpp", '#include "leat/log/log.hpp"\n', "public headers, base and os only"),
    "no pragma once": ("bench/x.hpp", "// Head.\n", "no #pragma once"),
    "no head comment": ("bench/x.hpp", "#pragma once\n", "starts with a comment"),
    "too long": ("src/cli/x.cpp", "int x;\n" * 601, "over 600 lines"),
    "too long a function": (
        "src/cli/x.cpp", "int f(int a,\n      int b) {\n" + "  f();\n" * 69 + "}\n", "over 70 lines"),
    "too long a function of a class": (
        "src/cli/x.cpp", "class X {\n  int f() {\n" + "    f();\n" * 69 + "  }\n};\n", "over 70 lines"),
    "too long a function of Rust": (
        "clients/rust/x.rs", "mod x {\n    fn f() {\n" + "        f();\n" * 69 + "    }\n}\n", "over 70 lines"),
    "too long a function of Rust with a long signature": (
        "clients/rust/x.rs", "fn f(\n    a: u8,\n) -> u8 {\n" + "    f();\n" * 69 + "}\n", "over 70 lines"),
    "too long a coroutine of Python": ("tools/x.py", "async def f():\n" + "    f()\n" * 70, "over 70 lines"),
    "too long a function of Python": ("tools/x.py", "def f():\n" + "    f()\n" * 70, "over 70 lines"),
    "retired word": ("tests/x.cpp", "// A test.\nOldKeeper x;\n", "retired word: OldKeeper"),
    "word retired there": ("src/cli/x.cpp", "int look;\n", "retired word: look"),
    "file with a retired name": ("src/cli/look.cpp", "int x;\n", "retired word: look"),
    "tab": ("src/cli/x.cpp", "\tint x;\n", "tab"),
    "trailing space": ("src/cli/x.cpp", "int x; \n", "space at the end"),
    "no last newline": ("src/cli/x.cpp", "int x;", "exactly one newline"),
    "folder of leftovers": ("src/utils/x.cpp", "int x;\n", "no common/"),
    "machine path": ("docs/x.md", f"see {MACHINE_PATH}\n", "path of one machine"),
    "docs name a missing path": ("docs/x.md", "`src/cli/none.cpp`\n", "no such path"),
    "docs name a missing file": ("docs/x.md", "`none_test.cpp`\n", "no such path"),
    "docs link to nothing": ("docs/x.md", "[x](none.md)\n", "link to nothing"),
    "results link to nothing": ("bench/results/README.md", "[x](../none.md)\n", "link to nothing"),
    "glob without a file": ("README.md", "`tests/crash/*.cpp`\n", "no such path"),
    "comment names missing docs": ("src/cli/x.cpp", "// docs/none.md\n", "no such file"),
    "comment names a missing section": (
        "src/cli/x.cpp", '// docs/internals/memory-model.md, "Nothing"\n', "has no section"),
    "edge with one end": (
        "include/leat/log/log.hpp", LOG.replace("  load_acquire<Edge::record_ready>(word);\n", ""),
        "record_ready has 1 of its two ends"),
    "edge named only in a comment": (
        "include/leat/log/log.hpp", LOG.replace("  load_acquire<Edge", "  // load_acquire<Edge"),
        "record_ready has 1 of its two ends"),
    "edge written twice, never read": (
        "include/leat/log/log.hpp", LOG.replace("load_acquire", "store_release"),
        "record_ready has writing ends only"),
    "edge not explained": (
        "docs/internals/memory-model.md", "# Edges\n\nsleeping and [record-ready]\n",
        "edge sleeping is not explained"),
    "edge without a test": (
        "tests/interleave/edges_test.cpp", '// Edges.\nweaken("sleeping");\n', "record_ready has no test"),
    "no edges at all": (
        "include/leat/base/atomic.hpp", HEAD, "no `enum class Edge`"),
}


@pytest.mark.parametrize("name", BAD)
def test_finds(name, tmp_path):
    path, text, expected = BAD[name]
    status, output = tidy(tmp_path, {path: text})
    assert status == 1
    # Only this problem is reported, in this file or (for edges) about it.
    problems = output.splitlines()[:-1]
    assert problems and all(expected in line for line in problems), output


def test_leaves_ignored_files_alone(tmp_path):
    """New files count before they are added to git; ignored ones never do."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    status, output = tidy(tmp_path, {".gitignore": "/scratch/\n", "scratch/x.cpp": "\t\n"})
    assert status == 0, output
    status, output = tidy(tmp_path, {"src/cli/new.cpp": "\tint x;\n"})
    assert status == 1 and "src/cli/new.cpp:1: tab" in output
