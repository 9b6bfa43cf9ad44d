#!/usr/bin/env python3
"""Runs scenarios with the drivers of all clients: README.md says what both are.

    run.py [--build DIR] [--only LANGUAGE,…] [--preload LIBRARY] [SCENARIO…]

Prints a table of scenarios by languages; exits with 1 if an answer differs from the expected one.
"""
import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build"
SECONDS = 30  # An answer that takes longer never comes.
# Interpreters leak at their end, and have stacks for signals of their own. The JVM and Go need SIGSEGV, which still
# ends a driver.
ASAN_OPTIONS = "abort_on_error=1:detect_leaks=0:handle_segv=0:use_sigaltstack=0"


def drivers(build, preload=None):
    """The command that starts each language's driver; into all but C's, AddressSanitizer's `preload` is loaded first."""
    clients = build / "clients"
    commands = {
        "c": [str(build / "conformance_c")],
        "python": ["/usr/bin/python3", str(ROOT / "clients/python/conformance.py")],
        "go": [str(clients / "go-conformance")],
        "rust": [str(clients / "rust-conformance")],
        "java": [str(clients / "java-conformance")],
        "node": ["node", str(ROOT / "clients/node/conformance.js")],
        "ruby": ["/usr/bin/ruby", f"-I{clients}/ruby/lib", str(ROOT / "clients/ruby/conformance.rb")],
        "lua": ["/usr/bin/env", f"LUA_CPATH={clients}/lua/5.4/?.so", "lua5.4",
                str(ROOT / "clients/lua/conformance.lua")],
        "luajit": ["/usr/bin/env", f"LUA_CPATH={clients}/lua/5.1/?.so", "luajit",
                   str(ROOT / "clients/lua/conformance.lua")],
    }
    if preload:
        for language in set(commands) - {"c"}:
            commands[language][:0] = ["/usr/bin/env", f"LD_PRELOAD={preload}", f"ASAN_OPTIONS={ASAN_OPTIONS}"]
    return commands


def chosen():
    """The languages that the variable CLIENTS chooses, or all. LuaJIT comes with Lua: its driver is the same program."""
    every, wanted = list(drivers(BUILD)), os.environ.get("CLIENTS")
    if not wanted:
        return every
    unknown = set(wanted.split(",")) - set(every) | {"luajit"} & set(wanted.split(","))
    if unknown:
        raise ValueError(f"CLIENTS={wanted}: no client is called {' or '.join(map(repr, sorted(unknown)))}; there are "
                         + ", ".join(name for name in every if name != "luajit"))
    return [name for name in every if name.replace("jit", "") in wanted.split(",")]


class NotApplicable(Exception):
    """The language cannot do this by its nature."""


class Failed(Exception):
    """An answer was not the expected one."""


class Driver:
    """A running driver, which answers one command at a time."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=environment)
        self.lines = queue.Queue()
        self.complaints = []
        self.readers = [threading.Thread(target=self.read, daemon=True),
                        threading.Thread(target=self.read_complaints, daemon=True)]
        for reader in self.readers:
            reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def read_complaints(self):
        self.complaints.extend(self.process.stderr)

    def ask(self, command):
        """The lines of the answer."""
        self.send(command)
        return self.hear(command)

    def send(self, command):
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self.why_it_ended()) from None

    def hear(self, command):
        """The lines of the answer to what was sent."""
        lines = []
        while not lines or not re.match(r"(ok|error|not_applicable)\b", lines[-1]):
            try:
                line = self.lines.get(timeout=SECONDS)
            except queue.Empty:
                raise Failed(f"no answer to '{command}' in {SECONDS} s") from None
            if line is None:
                raise Failed(self.why_it_ended())
            lines.append(line)
        if lines[-1].startswith("not_applicable"):
            raise NotApplicable(lines[-1].partition(" ")[2])
        return lines

    def why_it_ended(self):
        self.process.wait(timeout=SECONDS)
        self.readers[1].join(timeout=SECONDS)
        said = "".join(self.complaints)
        if len(said) > 6000:  # A sanitizer's report begins with what it is about, that of others ends with it.
            said = f"{said[:3000]}\n…\n{said[-3000:]}"
        return f"the driver ended with {self.process.returncode}: {said}"

    def end(self, kill):
        """Kills the driver, or lets it end; True if it ended as it should."""
        if not kill and self.process.poll() is None:
            try:
                self.process.stdin.write("quit\n")
                self.process.stdin.close()
            except (BrokenPipeError, ValueError):
                pass
            try:
                return self.process.wait(timeout=SECONDS) == 0
            except subprocess.TimeoutExpired:
                pass
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        return kill


def without_times(line):
    """A line in which each timestamp that is within 10 s of now is `timestamp=1`, and others are `timestamp=0`."""
    return re.sub(r" timestamp=(\d+)", lambda found: f" timestamp={int(abs(time.time() - int(found[1]) / 1000) < 10)}",
                  line)


class Step:
    """One line of a scenario, and the answer that it expects."""

    def __init__(self, number, who, command, retry_seconds):
        self.number = number
        self.who = who
        self.command = command
        self.retry_seconds = retry_seconds
        self.expected = []

    def matches(self, lines):
        if len(lines) != len(self.expected):
            return False
        return all(re.fullmatch("[^ ]*".join(re.escape(part) for part in pattern.split("*")), line)
                   if "*" in pattern and pattern != line else pattern == line
                   for pattern, line in zip(self.expected, lines))


def load(path):
    """(title, steps) of a scenario."""
    title, steps = "", []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            title = title or line.lstrip("# ")
        elif line.startswith("  ") and steps:
            steps[-1].expected.append(line.strip())
        elif match := re.fullmatch(r"([a-z])> (.+)", line):
            steps.append(Step(number, match[1], match[2], 0))
        elif match := re.fullmatch(r"([a-z])! (\d+) (.+)", line):
            steps.append(Step(number, match[1], match[3], int(match[2])))
        elif line.startswith("$ "):
            steps.append(Step(number, "$", line[2:], 0))
        elif line.strip():
            raise ValueError(f"{path}:{number}: not a line of a scenario")
    return title, steps


class Crowd:
    """Drivers, by name, in directories of their own; with its end both are gone.

        with Crowd() as crowd:
            crowd.start("first", "c", "create t topic", "publisher p t").ask("publish p value=x")
    """

    def __init__(self, build=BUILD, preload=None):
        self.commands = drivers(build, preload)
        self.running = {}
        self.directory = Path(tempfile.mkdtemp(prefix="leat-conformance-", dir="/dev/shm"))
        self.environment = dict(os.environ, LEAT_DIR=str(self.directory / "topics"),
                                LEAT_DATA_DIR=str(self.directory / "data"),
                                PYTHONPATH=str(build / "clients" / "python"),
                                NODE_PATH=str(build / "clients" / "node"),
                                LD_LIBRARY_PATH=str(build),
                                PATH=f"{build}:{BUILD}:{os.environ['PATH']}")
        (self.directory / "data").mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(kill=True)

    def end(self, kill):
        """Whether all drivers ended as they should."""
        ended = [driver.end(kill) for driver in self.running.values()]
        shutil.rmtree(self.directory, ignore_errors=True)
        return all(ended)

    def start(self, name, language, *commands):
        """A new driver, which has answered these commands with `ok`."""
        driver = self.running[name] = Driver(self.commands[language], self.environment)
        for command in commands:
            answer = driver.ask(command)[-1]
            if not answer.startswith("ok"):
                raise Failed(f"{language}: {command}: {answer}")
        return driver

    def kill(self, name):
        """Its process was waited for when this returns, so the kernel has released its locks."""
        self.running.pop(name).end(kill=True)


class Scenario(Crowd):
    """A run of a scenario: `a` is a driver of the language under test, every other letter one of the other."""

    def __init__(self, path, build, language, preload=None):
        super().__init__(build, preload)
        self.path = path
        self.title, self.steps = load(path)
        self.language = language
        others = [name for name in ("c", "python") if name != language and is_built(build, name)]
        self.other = others[0] if others else language

    def run(self):
        """Raises Failed or NotApplicable."""
        is_clean = has_ended = False
        try:
            for step in self.steps:
                self.take(step)
            is_clean = True
        finally:
            has_ended = self.end(kill=not is_clean)
        if not has_ended:
            raise Failed("a driver did not end with 0")

    def take(self, step):
        deadline = time.monotonic() + step.retry_seconds
        while True:
            lines = self.answer(step)
            if step.matches(lines):
                return
            if time.monotonic() >= deadline:
                raise Failed(f"{self.path.name}:{step.number}: {step.command}\n  wanted: "
                             f"{step.expected}\n  got:    {lines}")
            time.sleep(0.02)

    def answer(self, step):
        if step.who == "$":
            ran = subprocess.run(step.command, shell=True, capture_output=True, text=True,
                                 timeout=SECONDS, env=self.environment, check=False)
            return (ran.stdout + ran.stderr).splitlines()
        if step.command == "kill":
            self.kill(step.who)
            return ["ok"]
        if step.who not in self.running:
            self.start(step.who, self.language if step.who == "a" else self.other)
        return [without_times(line) for line in self.running[step.who].ask(step.command)]


def is_built(build, language):
    """Whether the language's driver and what it needs are there."""
    package = {"python": "python/leat/__init__.py", "node": "node/leat/leat.node",
               "ruby": "ruby/lib/leat/leat.so", "lua": "lua/5.4/leat.so",
               "luajit": "lua/5.1/leat.so"}.get(language)
    return (build / "clients" / package).exists() if package else Path(
        drivers(build)[language][0]).exists()


def scenarios():
    """All scenarios, by name."""
    return {path.stem: path for path in sorted((HERE / "scenarios").glob("*.txt"))}


def main():
    """See the top."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=BUILD)
    parser.add_argument("--only")
    parser.add_argument("--preload", metavar="LIBRARY")
    parser.add_argument("scenario", nargs="*")
    options = parser.parse_args()
    build = options.build.resolve()
    languages = options.only.split(",") if options.only else [
        name for name in drivers(build) if is_built(build, name)]
    if unknown := set(languages) - set(drivers(build)):
        parser.error(f"--only {options.only}: no driver is called {' or '.join(sorted(unknown))}")
    found = scenarios()
    failures = []
    print("".ljust(20), *(name.ljust(8) for name in languages))
    for name in options.scenario or found:
        cells = []
        for language in languages:
            try:
                Scenario(found[name], build, language, options.preload).run()
                cells.append("ok")
            except NotApplicable as reason:
                cells.append(f"({reason})")
            except Failed as failed:
                failures.append(f"{name}, {language}: {failed}")
                cells.append("FAILED")
        print(name.ljust(20), *(cell.ljust(8) for cell in cells), flush=True)
    print("\n".join(failures), file=sys.stderr, end="\n" if failures else "")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
