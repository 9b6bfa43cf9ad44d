#!/usr/bin/env python3
"""Builds and runs every test: what `make test` does, with a count of all of it as the last line.

    tools/run_tests.py [--jobs N] [--only STEP ...]

Steps: tidy, release, system, asan, tsan; and check, a subset of the first three, for `make check`.
Many tests spend their time waiting. So two cases run for each CPU, and while the tests of one step run,
the builds of the next steps already run at the lowest priority. A step that fails does not stop the
others. Every command has a time limit, so nothing can hang a CI machine. Logs: build/test-logs/. A part
without cases of its own (a build, tidy) counts as one test. A part that should run cases and runs none
counts as a failure. Skipped cases are listed, and count neither as passed nor as failed.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"

sys.path.insert(0, str(ROOT / "tests" / "conformance"))
from run import chosen  # pylint: disable=wrong-import-position

BUILD_SECONDS = 3600  # In the background it may get no processor time for long.
CASES_SECONDS = 1500

# The step "release" uses the preset "test"; the other steps are named after their presets.
PRESETS = {"release": "test"}

running = set()  # Processes that are killed if this program is interrupted.


@dataclass
class Outcome:
    """Names of cases, by result."""
    passed: list = field(default_factory=list)
    failed: list = field(default_factory=list)
    skipped: list = field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def run(name, command, seconds, background=False):
    """Runs a command, writes its output to a log. Returns (exit status, or None on timeout; log)."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name.replace(' ', '-')}.log"
    with open(log, "w", encoding="utf-8") as output:
        # In a new session, so that on a timeout everything the command started is killed with it.
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        running.add(process)
        if background:
            os.setpriority(os.PRIO_PGRP, process.pid, 19)
            with suppress(OSError):  # Needed where sessions share the CPUs (sched(7), autogroup).
                Path(f"/proc/{process.pid}/autogroup").write_text("19", encoding="utf-8")
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            output.write(f"\nstopped: not done after {seconds} s\n")
            status = None
        running.discard(process)
        return status, log


def show_tail(log, lines=60):
    text = log.read_text(encoding="utf-8", errors="replace").splitlines()
    print(f"--- last lines of {log.relative_to(ROOT)} ---")
    print("\n".join(text[-lines:]))
    print("---", flush=True)


def one(name, command, seconds, background=False):
    """A command that counts as one test."""
    status, log = run(name, command, seconds, background)
    if status == 0:
        return Outcome(passed=[name])
    show_tail(log)
    return Outcome(failed=[name])


def build(name, jobs, *targets, background=False):
    if name == "clients":  # They need the C library of the release build.
        return one("clients build", ["tools/clients.sh"], BUILD_SECONDS, background)
    preset = PRESETS.get(name, name)
    targets = ["--target", *targets] if targets else []
    outcome = one(f"{name} configure", ["tools/configure.sh", preset], 120)
    if not outcome.failed:
        outcome = one(f"{name} build", ["cmake", "--build", "--preset", preset, "--parallel",
                                        str(jobs), *targets, "--", "-k", "0"], BUILD_SECONDS,
                      background)
    return outcome


def read_junit(report):
    """Outcome from a JUnit file of ctest or pytest."""
    outcome = Outcome()
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name")
        if case.get("classname") not in (None, name):
            name = f"{case.get('classname')}.{name}"
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed.append(name)
        elif (skipped := case.find("skipped")) is not None:
            if skipped.get("type") == "pytest.skip":
                name += f": {skipped.get('message')}"
            # ctest reports a case whose executable is missing as skipped; count it as failed.
            missing = "Unable to find executable" in ElementTree.tostring(case, "unicode")
            (outcome.failed if missing else outcome.skipped).append(name)
        else:
            outcome.passed.append(name)
    return outcome


def cases(name, command, report):
    """A command that runs many tests and leaves a JUnit report."""
    report.unlink(missing_ok=True)
    status, log = run(name, command, CASES_SECONDS)
    outcome = Outcome()
    try:
        outcome = read_junit(report)
    except (OSError, ElementTree.ParseError):
        pass  # The command ended before it wrote a report; handled below.
    if status != 0 and not outcome.failed:
        outcome.failed.append(f"{name}: {'too late' if status is None else f'exit {status}'}")
    if not outcome.passed and not outcome.failed:
        outcome.failed.append(f"{name}: no test was run")
    if outcome.failed:
        show_tail(log, 200)
    return outcome


def ctest(name, jobs, expected, *options):
    """Runs the cases of a build. Each part named in `expected` must have run at least one."""
    report = LOGS / f"{name}-ctest.xml"
    command = ["ctest", "--preset", PRESETS.get(name, name), "-j", str(2 * jobs),
               "--output-junit", str(report), *options]
    if name in ("asan", "tsan") and fixed_addresses_work():
        command = ["setarch", "-R", *command]
    outcome = cases(f"{name} ctest", command, report)
    ran = {case.split(".")[0] for case in outcome.passed + outcome.failed}
    for some in (outcome.passed, outcome.failed, outcome.skipped):
        some[:] = [f"{name} {case}" for case in some]
    for part in sorted(expected - ran):
        outcome.failed.append(f"{name} ctest: nothing was run of {part}")
    return outcome


def fixed_addresses_work():
    """Whether address randomization can be turned off (setarch -R).

    The sanitizers fail at random where the kernel randomizes addresses with 32 bits.
    """
    return (shutil.which("setarch") is not None and
            subprocess.run(["setarch", "-R", "true"], stderr=subprocess.DEVNULL).returncode == 0)


def parts(*patterns):
    """Which of these globs ("tests/unit/**/*.cpp") have files, as ctest's name prefixes."""
    found = set()
    for prefix, pattern in patterns:
        if any(ROOT.glob(pattern)):
            found.add(prefix)
    return found


def clients():
    """The clients that the variable CLIENTS chooses, or all, as ctest's name prefixes. C's is in "capi"."""
    return {f"client_{name}" for name in chosen() if name != "c"}


EVERYWHERE = [("unit", "tests/unit/**/*.cpp"), ("crash", "tests/crash/*.cpp"),
              ("storm", "tests/storm/*.cpp"), ("broker", "tests/broker/*.cpp"),
              ("lightq_server", "tests/lightq_server/*.cpp"), ("capi", "tests/capi/*.cpp"), ("lightq_client", "tests/lightq_client/*.cpp"),
              ("example", "examples/*.cpp")]
NO_THREADS = [("bench", "tests/bench/*.cpp"), ("multi_failure", "tests/multi_failure/*.cpp")]  # Not with ThreadSanitizer.
NOT_SANITIZED = [("interleave", "tests/interleave/*.cpp")]


def step_tidy(_jobs, _built):
    return one("tidy", [sys.executable, "tools/tidy.py"], 60)


def step_release(jobs, built):
    outcome = built("release")
    if not outcome.failed:
        outcome.add(ctest("release", jobs, parts(*EVERYWHERE, *NO_THREADS, *NOT_SANITIZED,
                                                 ("header", "include/**/*.hpp"))))
    return outcome


def print_conformance(outcome):
    """Which scenarios of tests/conformance passed, by language; "-" where a language cannot do one."""
    table = {}
    for mark, names in (("ok", outcome.passed), ("FAILED", outcome.failed), ("-", outcome.skipped)):
        for name in names:
            if found := re.search(r"test_conformance\[(\w+)-(\w+)\]", name):
                table.setdefault(found[1], {})[found[2]] = mark
    languages = sorted({language for row in table.values() for language in row})
    for name, row in sorted(table.items()):
        if name == min(table):
            print("  conformance".ljust(16), *(language.ljust(7) for language in languages))
        print(f"  {name:14}", *(row.get(language, "").ljust(7) for language in languages))


def step_system(jobs, built, *options):
    report = LOGS / "system.xml"
    outcome = built("clients")
    outcome.add(cases("system", [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                            "-n", str(jobs + 1), "--dist", "loadgroup",
                            f"--junitxml={report}", "tests/system", *options], report))
    print_conformance(outcome)
    return outcome


def step_asan(jobs, built):
    """Uses the second compiler (clang), so everything is compiled by it as well, with the fuzzers."""
    outcome = built("asan")
    if not outcome.failed:
        outcome.add(ctest("asan", jobs, clients() | parts(*EVERYWHERE, *NO_THREADS, ("fuzz", "tests/fuzz/*.cpp"))))
    return outcome


def step_tsan(jobs, built):
    outcome = built("tsan")
    if not outcome.failed:
        outcome.add(ctest("tsan", jobs, parts(*EVERYWHERE, ("race", "tests/race/*.cpp"))))
    return outcome


# Of tests/system: what takes long, and what needs more than build/leat (the broker, the clients, examples, leat-bench).
NOT_CHECKED = ["-k", "not bench and not lightq", *(f"--ignore-glob=*/test_{name}.py" for name in (
    "client_*", "conformance", "demo", "docs", "packaging*", "patterns", "remote", "serve*"))]


def step_check(jobs, _built):
    """The quick checks after a change: what it most likely breaks. Builds what it runs: build/leat and the unit tests."""
    outcome = step_tidy(jobs, None)
    outcome.add(build("release", jobs, "leat_cli", "leat_unit_tests"))
    if not outcome.failed:
        outcome.add(ctest("release", jobs, parts(EVERYWHERE[0]), "-L", "unit"))
        outcome.add(step_system(jobs, lambda _clients: Outcome(), *NOT_CHECKED))
    return outcome


STEPS = {"tidy": step_tidy, "release": step_release, "system": step_system,
         "asan": step_asan, "tsan": step_tsan, "check": step_check}
EACH = [name for name in STEPS if name != "check"]  # The other steps include all of "check".
# Steps that begin with a whole build, in this order; what the build is called.
BUILDS = {"release": "release", "system": "clients", "asan": "asan", "tsan": "tsan"}


def run_steps(names, jobs):
    total = Outcome()
    with ThreadPoolExecutor(max_workers=1) as builder:
        builds = {what: builder.submit(build, what, jobs, background=True)
                  for step, what in BUILDS.items() if step in names}
        try:
            for name in names:
                print(f"{name} …", flush=True)
                start = time.monotonic()
                outcome = STEPS[name](jobs, lambda wanted: builds[wanted].result())
                seconds = time.monotonic() - start
                skipped = f", {len(outcome.skipped)} skipped" if outcome.skipped else ""
                print(f"{name}: {len(outcome.passed)} passed, {len(outcome.failed)} failed{skipped} "
                      f"({seconds:.0f} s)", flush=True)
                total.add(outcome)
        finally:
            builder.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                os.killpg(process.pid, signal.SIGKILL)
    return total


def main():
    parser = argparse.ArgumentParser(description="Builds and runs every test.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", choices=STEPS, default=EACH, metavar="STEP",
                        help="only these: " + ", ".join(STEPS))
    arguments = parser.parse_args()
    try:
        languages = chosen()
    except ValueError as wrong:
        print(f"run_tests.py: {wrong}", file=sys.stderr)
        return 2
    if os.environ.get("CLIENTS"):
        print(f"of the clients, only: {', '.join(languages)} (CLIENTS={os.environ['CLIENTS']})", flush=True)

    total = run_steps(arguments.only, arguments.jobs)
    for name in total.skipped:
        print(f"skipped: {name}")
    for name in total.failed:
        print(f"FAILED: {name}")
    print(f"{len(total.passed)} passed, {len(total.failed)} failed")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
