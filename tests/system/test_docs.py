"""If these tests failed, README.md or docs/ would be wrong: a command would not run or print something
else than is shown, C++ code would not compile, or numbers in docs/format.md would differ from layout.hpp.

All documents run in one directory, on the same topics, as somebody reads them one after the other.

In fenced blocks:

    ```console             $ lines are run, the lines after each are what it prints (both streams);
                           … stands for anything within a line, a line of … for any lines
    ```console table       the same, but columns may be of other widths
    ```console figures     the same, and any number may stand for any other, k and M for 1000 and 10^6
    ```console terminal=1  left running while the rest of the document goes on
    ```sh                  each line that calls leat is run and must exit 0, unless it says "# not run"
    ```cpp                 whole programs (with main) are compiled and run; others are compiled as the
                           body of a function that can use the names of PRELUDE
    ```c                   run with the names of C_PROGRAM, and must have received "hello"
"""
import os
import re
import runpy
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from conftest import Leat

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", "bench/results/README.md",
             *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))]
FORMAT = ROOT / "docs" / "format.md"

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.S | re.M)
CALLS_LEAT = re.compile(r"(?:^|[|;&(]\s*)(?:build/)?leat\b")
# Not run, because a test cannot do it, or other tests do: install, build, change the user, containers.
NOT_RUN = {"apt-get", "cd", "cmake", "docker", "git", "make", "sudo", "tools/run_tests.py"}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]

PRELUDE = """\
#include <leat/broker.hpp>
#include <leat/leat.hpp>
#include <poll.h>
#include <cstdio>
#include <cstring>
#include <iostream>
using namespace std::chrono_literals;
extern leat::Result<leat::Topic> topic;
extern leat::Result<leat::Publisher> publisher;
extern leat::Result<leat::Subscriber> subscriber;
extern leat::Result<leat::Subscriber> other;
extern leat::Bytes bytes;
extern std::stop_token stop;
void use(leat::Bytes bytes);
std::size_t fill(std::span<std::byte> room);
"""


def blocks(document):
    """(info string, text, line of the first line) of each fenced block."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return [(found.group(1).strip(), found.group(2), text[:found.start()].count("\n") + 2)
            for found in FENCE.finditer(text)]


def with_blocks(*languages):
    return [document for document in DOCUMENTS
            if any(info.split(" ")[0] in languages for info, _, _ in blocks(document))]


# ---- Commands ----------------------------------------------------------------------------------


class Shell:
    """Runs the commands of the documents, all on the same directory of topics."""

    def __init__(self, directory):
        self.topics = Path(tempfile.mkdtemp(prefix="leat-test-", dir="/dev/shm"))
        leat = Leat(self.topics)
        bin_directory = directory / "bin"
        bin_directory.mkdir()
        (directory / "data").mkdir(mode=0o700)
        (bin_directory / "leat").symlink_to(leat.executable.resolve())
        (directory / "build").symlink_to(bin_directory)
        self.leat = leat
        self.directory = directory
        self.environment = {**leat.environment, "PATH": f"{bin_directory}:{os.environ['PATH']}",
                            "LC_ALL": "C.UTF-8", "LEAT_DATA_DIR": str(directory / "data")}
        self.waiting = None  # (process, what it must have printed, where)
        self.printed = directory / "printed by the waiting terminal"

    def run(self, command):
        # `make demo` is `make build` and then this command.
        command = re.sub(r"^make demo$", "leat demo --records 20000", command)
        done = subprocess.run(["bash", "-c", command], cwd=self.directory, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)
        if self.waiting is not None and "leat pub" in command:
            self.let_terminal_catch_up()
        return done.returncode, done.stdout

    def let_terminal_catch_up(self):
        """Waits until the terminal printed what it should, or for 5 s: a later command may cause more."""
        _, expected, _ = self.waiting
        until = time.monotonic() + 5
        while (self.printed.read_text().count("\n") < expected.count("\n") and
               time.monotonic() < until):
            time.sleep(0.02)
        time.sleep(0.2)  # Time for what follows the output, such as acknowledging.

    def start(self, command, expected, where):
        self.stop()
        with open(self.printed, "w", encoding="utf-8") as output:
            process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=self.directory,
                                       env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT,
                                       start_new_session=True)
        self.leat.started.append(process)  # Killed at the end, whatever happens.
        self.waiting = (process, expected, where)
        wait_until(lambda: process.poll() is not None or sleeps(process.pid), f"{where}: asleep")

    def stop(self):
        """Ends the command that was left running, and checks its output."""
        if self.waiting is None:
            return
        process, expected, where = self.waiting
        self.waiting = None
        time.sleep(0.5)
        assert process.poll() is None, f"{where}: ended with {process.returncode}"
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=10)
        printed = self.printed.read_text()
        assert matches(expected, printed), f"{where}: printed\n{printed}"

    def end(self):
        """Ends what a document that failed has left running."""
        self.leat.stop_all()
        self.waiting = None

    def remove(self):
        self.end()
        shutil.rmtree(self.topics, ignore_errors=True)


def sleeps(pid):
    """Whether the process has been asleep for some time, so that it is no longer starting."""
    state = Path(f"/proc/{pid}/stat")
    for _ in range(10):
        if state.read_text().rsplit(")", 1)[1].split()[0] != "S":
            return False
        time.sleep(0.05)
    return True


def wait_until(is_true, what):
    deadline = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.02)


def matches(expected, printed, info=""):
    any_numbers = "figures" in info
    any_widths = any_numbers or "table" in info
    pattern = ""
    for line in expected.rstrip("\n").split("\n") if expected else []:
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*"
            continue
        escaped = re.sub(r"(?:\\ )*…", "[^\n]*", re.escape(line))
        if any_numbers:
            escaped = re.sub(r"\d(?:[\d,.]*\d)?[kM]?", r"\\d[\\d,.]*[kM]?", escaped.replace(r"\.", "."))
        if any_widths:
            escaped = re.sub(r"(?:\\ )+", "[ ]+", escaped)
        pattern += escaped + "\n"
    return re.fullmatch(pattern, printed) is not None


def commands_of_console(text, line):
    """(command, expected output, line number) for each `$ `."""
    found = []
    for number, content in enumerate(text.split("\n")[:-1], line):
        if content.startswith("$ "):
            found.append([content[2:], "", number])
        else:
            assert found, f"line {number}: output before a command"
            found[-1][1] += content + "\n"
    return found


def run_console(shell, document, info, text, line):
    for command, expected, number in commands_of_console(text, line):
        where = f"{document}:{number}: {command}"
        if "terminal=1" in info:
            shell.start(command, expected, where)
            continue
        if command.split()[0] == "make":
            check_make_target(command)
        if command.split()[0] in NOT_RUN and command != "make demo":
            continue
        status, printed = shell.run(command)
        if expected:
            assert matches(expected, printed, info), f"{where}: printed\n{printed}"
        else:
            assert (status, printed) == (0, ""), f"{where}: exit {status}, printed\n{printed}"


def run_sh(shell, document, text, line):
    for number, content in enumerate(text.replace("\\\n", " ").split("\n"), line):
        command, _, comment = content.partition("#")
        if not command.strip() or "not run" in comment:
            continue
        where = f"{document}:{number}: {command}"
        if command.split()[0] == "make":
            check_make_target(command)
        if CALLS_LEAT.search(command.strip()):
            status, printed = shell.run(command)
            assert status == 0, f"{where}: exit {status}, printed\n{printed}"
        else:
            first = next(word for word in command.split() if "=" not in word)
            assert first in NOT_RUN or first.startswith("build/"), f"{where}: never run; why?"


def check_make_target(command):
    for target in command.split()[1:]:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 0, f"{command}: {done.stderr}"


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """One for all documents, so that none needs what another one has used up."""
    shell = Shell(tmp_path_factory.mktemp("reader"))
    yield shell
    shell.remove()


@pytest.mark.parametrize("document", with_blocks("console", "sh"))
def test_commands(document, shell):
    shell.end()
    for info, text, line in blocks(document):
        if info.split(" ")[0] == "console":
            run_console(shell, document, info, text, line)
        elif info == "sh":
            run_sh(shell, document, text, line)
    shell.stop()


def test_demo_of_the_makefile_is_what_is_run_here():
    done = subprocess.run(["make", "--no-print-directory", "-n", "demo"], cwd=ROOT,
                          capture_output=True, text=True, timeout=60)
    assert done.stdout.rstrip().endswith("\nbuild/leat demo")


def test_output_is_compared():
    assert matches("a …\n…\nz\n", "a b\nc\nd\nz\n")
    assert not matches("a …\nz\n", "a b\nc\nz\n")
    assert matches("x  12.5 M/s\n", "x 3 M/s\n", "figures")
    assert not matches("x  12.5 M/s\n", "x 3 k/s\n", "figures")
    assert matches("x  12.5k 3\n", "x 987   1.5M\n", "figures")
    assert matches("x  12\ny   3\n", "x 12\ny  3\n", "table")
    assert not matches("x  12\n", "x 13\n", "table")
    assert not matches("x  12\n", "x 12\n")
    assert not matches("12\n", "13\n")


# ---- C++ ---------------------------------------------------------------------------------------


def compile_cpp(source, *arguments):
    done = subprocess.run(["g++", "-std=c++20", *WARNINGS, "-I", ROOT / "include", source,
                           *arguments], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("document", with_blocks("cpp"))
def test_cpp_compiles(document, shell, tmp_path):
    fragments = PRELUDE
    for number, (info, text, line) in enumerate(blocks(document)):
        if info != "cpp":
            continue
        source = tmp_path / f"snippet_{number}.cpp"
        placed = f'#line {line} "{document}"\n{text}'
        if "int main(" in text:
            source.write_text(placed)
            compile_cpp(source, "-pthread", "-o", source.with_suffix(""))
            done = subprocess.run([source.with_suffix("")], capture_output=True, timeout=60,
                                  env=shell.environment)
            assert done.returncode == 0, f"{document}:{line}: {done}"
        else:
            fragments += f"void snippet_{number}() {{\n{placed}}}\n"
    source = tmp_path / "fragments.cpp"
    source.write_text(fragments)
    compile_cpp(source, "-fsyntax-only", "-Wno-unused-variable", "-Wno-unused-but-set-variable")


# ---- C -----------------------------------------------------------------------------------------


C_PROGRAM = """\
#include <leat/leat.h>
#include <stdio.h>
int main(void) {
  leat_topic *topic;
  leat_publisher *publisher;
  leat_subscriber *subscriber;
  leat_record records[64];
  uint32_t count = 0;
%s
  for (uint32_t i = 0; i < count; ++i) printf("%%.*s\\n", (int)records[i].value_size, (const char *)records[i].value);
  return 0;
}
"""


@pytest.mark.parametrize("document", with_blocks("c"))
def test_c_receives_what_it_publishes(document, leat, tmp_path):
    library = ROOT / "build"
    for number, (info, text, line) in enumerate(blocks(document)):
        if info != "c":
            continue
        source = tmp_path / f"snippet_{number}.c"
        source.write_text(C_PROGRAM % f'#line {line} "{document}"\n{text}')
        compiled = subprocess.run(["cc", "-std=c99", *WARNINGS, f"-I{library / 'capi'}", source,
                                   f"-L{library}", f"-Wl,-rpath,{library}", "-lleat", "-o", source.with_suffix("")],
                                  capture_output=True, text=True, timeout=60)
        assert compiled.returncode == 0, compiled.stderr
        done = subprocess.run([source.with_suffix("")], env=leat.environment, capture_output=True, text=True,
                              timeout=20)
        assert (done.returncode, done.stdout) == (0, "hello\n"), f"{document}:{line}: {done}"


# ---- Tests that are named ----------------------------------------------------------------------


def test_tests_that_documents_name_exist():
    tests = "".join(path.read_text(encoding="utf-8", errors="replace")
                    for path in ROOT.glob("tests/**/*") if path.suffix in (".py", ".cpp"))
    suites = re.compile(r"^(?:TEST|TEST_F|TEST_P)\((\w+), (\w+)\)", re.M)
    cases = {f"{suite}.{case}" for suite, case in suites.findall(tests)}
    named = 0
    for document in DOCUMENTS:
        for line in (ROOT / document).read_text(encoding="utf-8").splitlines():
            for name in re.findall(r"`(test_\w+|[A-Z]\w+\.[A-Z]\w+)`", line):
                if name.startswith("test_"):
                    assert f"def {name}(" in tests, f"{document}: {name}"
                    named += 1
                elif name.split(".")[0] in {case.split(".")[0] for case in cases}:
                    assert name in cases, f"{document}: {name}"
                    named += 1
    assert named > 10


# ---- The format --------------------------------------------------------------------------------


def table_rows(text):
    """The cells of the first table in a text, without its header rows."""
    lines = [line for line in text.split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def section(heading):
    """The text below a heading of docs/format.md, up to the next heading, without drawings."""
    found = re.search(rf"^#+ {heading}\n(.*?)(?=^#)", FORMAT.read_text() + "\n#", re.S | re.M)
    assert found, f"docs/format.md has no section {heading}"
    return FENCE.sub("", found.group(1))


STRUCTS = re.findall(r"^#+ `(\w+)`, (\d+) bytes$", FORMAT.read_text(), re.M)


@pytest.mark.parametrize("name,size", STRUCTS)
def test_format_draws_every_byte(name, size):
    """Fields follow each other without a hole, up to the end of the struct."""
    at = 0
    for offset, length, *_ in table_rows(section(rf"`{name}`, {size} bytes")):
        assert int(offset) == at, f"{name}: after {at}"
        at += int(length)
    assert at == int(size)


def struct_checks():
    checks = []
    for name, size in STRUCTS:
        checks.append(f"sizeof({name}) == {size}")
        for offset, length, field, _ in table_rows(section(rf"`{name}`, {size} bytes")):
            if field:
                field = field.strip("`")
                checks.append(f"offsetof({name}, {field}) == {offset}")
                checks.append(f"sizeof({name}::{field}) == {length}")
    return checks


def claim_word_checks():
    checks = []
    for size, granules, records, segments, lap, *_ in table_rows(section("The claim word")):
        power = int(re.match(r"2\^(\d+)", size).group(1))
        layout = f"ClaimLayout::for_segment((1ULL << {power}) / kGranule)"
        checks += [f"{layout}.granule_bits == {granules}", f"{layout}.record_bits == {records}",
                   f"{layout}.segment_bits == {segments}"]
        assert int(re.match(r"2\^(\d+)", lap).group(1)) == power + int(segments), size
    return checks


# Sentences of docs/format.md, each with the equivalent C++ expression. `topic` has default options.
SENTENCES = {
    "Version 4.": "kFormatVersion == 4",
    "the bytes `EATLOG1` and a zero": "kMagic == 0x00'31'47'4f'4c'54'41'45",
    "Lines of\n128 bytes": "kLine == 128",
    "1 retain all, 2 single writer, 4 timestamps, 8 delete when unused, 16 durable":
        "kRetainAll == 1 && kSingleWriter == 2 && kTimestamps == 4 && kDeleteWhenUnused == 8 && "
        "kDurable == 16 && kAllTopicFlags == 31",
    "a multiple of 4096; 4096 to 2^30":
        "kPage == 4096 && Geometry::kMinSegmentSize == 4096 && Geometry::kMaxSegmentSize == 1 << 30",
    "per partition; 2 to 1024": "kMaxSegments == 1024",
    "| 1 to 1024 |": "Geometry::kMaxPartitions == 1024",
    "slots; 3 to 4098, 2 of them spare": "kMaxParticipants == 4096 && kSpareSlots == 2",
    "0 block, 1 fail, 2 overwrite, 3 grow":
        "int(leat::Policy::block) == 0 && int(leat::Policy::fail) == 1 && "
        "int(leat::Policy::overwrite) == 2 && int(leat::Policy::grow) == 3",
    "Bit 63: it has no memory": "kNoMemory == 1ULL << 63",
    "2^64 - 1: deleted": "kDeletionDecided == ~0ULL",
    "1 reserved (its owner is still filling the slot in), 2 publisher, 3 exclusive publisher,\n"
    "4 subscriber, 5 repairer":
        "int(ParticipantRole::reserved) == 1 && int(ParticipantRole::publisher) == 2 && "
        "int(ParticipantRole::exclusive_publisher) == 3 && int(ParticipantRole::subscriber) == 4 && "
        "int(ParticipantRole::repairer) == 5",
    "byte\n2^56 + *i*": "lock_offset(5) == (1LL << 56) + 5",
    "segment number x 65536 + physical": "kPhysicalBits == 16",
    "0 idle, 1 taking, 2 claimed": "kIdle == 0 && kClaiming == 1 && kClaimed == 2 && kPhaseMask == 3",
    "### `SegmentEntry`, 32 bytes": "sizeof(SegmentEntry) == 32",
    "| closed | segment number, low bits": "ClaimLayout::kClosed == 1ULL << 63",
    "0 none, 1 gating, 2 evicted (was gating), 3 lossy":
        "int(ReaderMode::none) == 0 && int(ReaderMode::gating) == 1 && int(ReaderMode::evicted) == 2 "
        "&& int(ReaderMode::lossy) == 3",
    "| waking | deleted | sleeping |": "kSleeping == 1 && kDeleted == 2 && kWaking == 4 && kWakeStep == 8",
    "16-byte granules": "kGranule == 16",
    "bit 31: the claim took more than one offset": "kBatchClaim == 1U << 31",
    "bits 0 to 28: payload bytes; 29: has a key; 30: has headers; 31: has a timestamp":
        "kDetailLength == (1U << 29) - 1 && kHasKey == 1U << 29 && kHasHeaders == 1U << 30 && "
        "kHasTimestamp == 1U << 31",
    "1 data, 2 batch, 3 aborted (given up by its publisher), 4 died":
        "int(RecordKind::data) == 1 && int(RecordKind::batch) == 2 && int(RecordKind::aborted) == 3 "
        "&& int(RecordKind::died) == 4 && int(RecordKind::revoked) == 5",
    "(position * 0x9e3779b97f4a7c15) ^ key":
        "position_tag(77, 99) == ((77 * 0x9e3779b97f4a7c15ULL) ^ 99) << 8",
    "each on a\nmultiple of 8": "kBatchAlignment == 8",
    "at least twice `segment_count`, and at least 8":
        "Geometry::entries_for(2) == 8 && Geometry::entries_for(8) == 16 && "
        "Geometry::entries_for(9) == 32",
    "`control` of 69632 bytes": "topic.control_size() == 69632",
    "524272 bytes by default": "topic.max_payload() == 524272",
    "536870896 at most": "largest.max_payload() == 536870896",
    "a partition has at most 128": "largest.is_valid() && !too_large.is_valid()",
    "at most 2 per granule": "kBatchAlignment * 2 == kGranule",
    "64 KiB to 1 TiB": "kMinFileSize == 64 << 10 && kMaxFileSize == 1ULL << 40",
    "up to 256 KiB of log bytes": "kTargetFrame == 256 << 10 && kMaxFrame == 1 << 29",
    "10^10 - 1": "kMaxGeneration == 9'999'999'999",
    "on byte 2 + *n* of": "kAttachLock == 0 && kLeavingLock == 1 && kArchiverLock == 2",
    "0 the disk is fine, 1 it is full, 2 it cannot be written":
        "DiskState{1} == DiskState::no_space && DiskState{2} == DiskState::read_only",
    "1 os, 2 interval, 3 fsync": "StoredDurability{1} == StoredDurability::os && "
                                 "StoredDurability{3} == StoredDurability::fsync",
    "most 16384, in the order of partitions": "kMostGaps == 16384",
}


def test_format_is_that_of_the_code(tmp_path):
    text = FORMAT.read_text()
    for sentence in SENTENCES:
        assert sentence in text, f"docs/format.md no longer says: {sentence}"
    checks = struct_checks() + claim_word_checks() + list(SENTENCES.values())
    assert len(STRUCTS) == 28 and len(checks) > 100
    lines = "\n".join(f"  if (!({check})) std::puts({c_string(check)}), ++wrong;" for check in checks)
    source = tmp_path / "format.cpp"
    source.write_text(f"""\
#include <cstddef>
#include <cstdio>
#include <leat/leat.hpp>
#include <leat/store/store.hpp>
using namespace leat::detail;
Geometry geometry(std::uint64_t segment_size, std::uint32_t segments) {{
  Geometry made;
  made.segment_size = segment_size;
  made.segment_count = segments;
  made.partition_count = 1;
  made.participant_capacity = leat::TopicOptions{{}}.participants + kSpareSlots;
  made.derive();
  return made;
}}
int main() {{
  const Geometry topic = geometry(leat::TopicOptions::kDefaultCapacity / 8, 8);
  const Geometry largest = geometry(1 << 30, 128);
  const Geometry too_large = geometry(1 << 30, 129);
  int wrong = 0;
{lines}
  return wrong;
}}
""")
    compile_cpp(source, "-Wno-conversion", "-o", tmp_path / "format")
    done = subprocess.run([tmp_path / "format"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"not so in layout.hpp:\n{done.stdout}"


def c_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def test_tables_are_what_their_commands_print():
    done = subprocess.run([ROOT / "tools/readme_tables.py", "--check", "--leat",
                           os.environ.get("LEAT_BIN", ROOT / "build" / "leat")],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_report_in_the_repository_is_what_its_command_prints():
    done = subprocess.run([os.environ.get("LEAT_BIN", ROOT / "build" / "leat"), "bench", "report",
                           "bench/results", "--html", "-"], cwd=ROOT, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (ROOT / "bench/results/report.html").read_text(), (
        "run leat bench report bench/results --html bench/results/report.html --svg bench/results/pictures")


def test_figures_have_a_place_in_their_documents():
    """So that tools/readme_figures.py, which measures for minutes, can write them."""
    tool = runpy.run_path(str(ROOT / "tools/readme_figures.py"))
    for document, before, after in (tool["DEMO"], tool["SPEED"]):
        assert len(re.findall(f"{before}.*?{after}", document.read_text(), re.S)) == 1, document


def test_readme_shows_five_lines_of_cpp_on_its_first_screen():
    lines = (ROOT / "README.md").read_text().split("\n")[:30]
    assert len(lines[lines.index("```cpp") + 1:]) == 5 and "```" not in lines[-5:]


def test_readme_names_the_files_to_read():
    """The way from publish() to poll() and to what happens when the publisher dies."""
    readme = (ROOT / "README.md").read_text()
    listed = re.search(r"^## Read the code in this order\n(.*?)^## ", readme, re.S | re.M).group(1)
    files = re.findall(r"^\d+\. `(include/[\w./]+)`", listed, re.M)
    assert files[0] == "include/leat/publisher.hpp" and files[-1] == "include/leat/log/repair.hpp"
    assert len(files) <= 8 and all((ROOT / name).exists() for name in files)
