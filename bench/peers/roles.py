"""Runs the processes of one measurement: starts them in order, talks with them, pins them, measures
their CPU time from outside, and always ends them.

    with Workplace() as place:
        results = measure([Role("reader", [program, "reader"], cpu=1),
                           Role("writer", [program, "writer"], cpu=0)], place, limit_seconds=60)

All languages keep to the protocol that cpp/peer.hpp describes. Receivers come first.
"""
import ctypes
import glob
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

SHARED_MEMORY = "/dev/shm"
PREFIX = "leat-peers-"
PR_SET_PDEATHSIG = 1
LOOK_SECONDS = 0.2  # While waiting for one role, how often to check that the others are alive.
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count(1)


class Failed(Exception):
    """Why a measurement gave no result, in one sentence."""


class TooLate(Failed):
    """A role did not answer within its time limit."""


class Workplace:
    """A directory in shared memory for one measurement. It is removed at the end, with all other files
    in shared memory whose names begin with its name."""

    def __enter__(self):
        remove_leftovers()
        base = SHARED_MEMORY if os.path.isdir(SHARED_MEMORY) else tempfile.gettempdir()
        self.path = Path(base, f"{PREFIX}{os.getpid()}-{next(_numbers)}")
        self.path.mkdir(mode=0o700)
        return self

    def __exit__(self, *_):
        remove_all_of(self.path)


def remove_all_of(path):
    shutil.rmtree(path, ignore_errors=True)
    for name in glob.glob(f"{glob.escape(str(path))}[._]*"):
        if os.path.isdir(name):
            shutil.rmtree(name, ignore_errors=True)
        else:
            Path(name).unlink(missing_ok=True)


def remove_leftovers():
    """Removes what a driver left that was killed."""
    for name in glob.glob(f"{SHARED_MEMORY}/{PREFIX}*"):
        process = os.path.basename(name)[len(PREFIX):].split("-")[0]
        if process.isdigit() and not os.path.exists(f"/proc/{process}"):
            remove_all_of(name)


@dataclass
class Role:
    name: str
    command: list
    cpu: int | None = None       # For its main thread, or its thread named "role".
    other_cpu: int | None = None  # For its thread named "role2", if it has one.
    is_helper: bool = False      # Prints "ready", then runs until the end.
    process: subprocess.Popen = field(default=None, repr=False)
    unread: bytes = b""
    errors: object = None
    others: list = field(default_factory=list, repr=False)  # Must live while this one is waited for.

    def start(self, cpus, environment):
        def prepare():
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.sched_setaffinity(0, cpus)
            for number in (signal.SIGINT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)

        self.errors = tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(
                [str(part) for part in self.command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self.errors, env=environment, start_new_session=True, preexec_fn=prepare)
        except OSError as error:
            raise Failed(f"cannot start the {self.name}: {error.strerror}") from error

    def say(self, text):
        try:
            self.process.stdin.write(text.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self.why_it_ended()) from None

    def hear(self, deadline, limit_seconds):
        """Its next line."""
        while b"\n" not in self.unread:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TooLate(f"the {self.name} was not done within {limit_seconds:g} s")
            if not select.select([self.process.stdout], [], [], min(left, LOOK_SECONDS))[0]:
                for other in self.others:
                    if other.process is not None and other.process.poll() is not None:
                        raise Failed(other.why_it_ended())
                continue
            read = os.read(self.process.stdout.fileno(), 4096)
            if not read:
                raise Failed(self.why_it_ended())
            self.unread += read
        line, self.unread = self.unread.split(b"\n", 1)
        return line.decode(errors="replace")

    def expect(self, word, deadline, limit_seconds):
        line = self.hear(deadline, limit_seconds)
        if line != word:
            raise Failed(f"the {self.name} said '{line[:200]}' instead of '{word}'")

    def hear_result(self, deadline, limit_seconds):
        line = self.hear(deadline, limit_seconds)
        try:
            result = json.loads(line)
        except ValueError:
            result = None
        if not isinstance(result, dict) or not all(
                isinstance(value, (int, float)) for value in result.values()):
            raise Failed(f"the {self.name} said '{line[:200]}', which is no result")
        return result

    def why_it_ended(self):
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return f"the {self.name} closed its output"
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        said = next((line for line in lines if line.strip()), "and said nothing")
        return f"the {self.name} ended with {code}: {said.strip()[:300]}"

    def pin(self):
        """Pins what sends and receives; other threads of a runtime run on any CPU."""
        if self.cpu is None:
            return
        threads = {name: thread for thread, name in self.threads()}
        os.sched_setaffinity(threads.get("role", self.process.pid), {self.cpu})
        if "role2" in threads and self.other_cpu is not None:
            os.sched_setaffinity(threads["role2"], {self.other_cpu})

    def threads(self):
        for path in glob.glob(f"/proc/{self.process.pid}/task/*"):
            try:
                yield int(os.path.basename(path)), Path(path, "comm").read_text().strip()
            except OSError:
                pass  # It has just ended.

    def usage(self):
        """(CPU time in ns, context switches) of the process so far."""
        switches = 0
        for thread, _ in self.threads():
            try:
                status = Path(f"/proc/{self.process.pid}/task/{thread}/status").read_text()
            except OSError:
                continue
            switches += sum(int(line.split()[1]) for line in status.splitlines()
                            if "ctxt_switches" in line)
        return cpu_ns_of(self.process.pid), switches

    def end(self):
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            try:
                pipe.close()
            except BrokenPipeError:
                pass


def cpu_ns_of(process):
    """The CPU time of another process, by the clock number that the kernel defines for it."""
    return time.clock_gettime_ns(((~process) << 3) | 2)


class Deadline:
    def __init__(self, seconds):
        self.at, self.seconds = time.monotonic() + seconds, seconds

    def args(self):
        return self.at, self.seconds


def start_all(roles, cpus, deadline, environment):
    for role in roles:
        role.others = [other for other in roles if other is not role]
        role.start(cpus, environment)
        role.expect("ready", *deadline.args())
    for role in roles:
        if not role.is_helper:
            role.say("go")


def measure(roles, cpus, limit_seconds, environment=None):
    """The result of each role, with "cpu_ns" and "context_switches" of its measured part."""
    deadline = Deadline(limit_seconds)
    workers = [role for role in roles if not role.is_helper]
    try:
        start_all(roles, cpus, deadline, environment)
        for role in workers:
            role.expect("warm", *deadline.args())
        for role in workers:
            role.pin()
        before = {role.name: role.usage() for role in roles}
        for role in workers:
            role.say("go")
        results = {role.name: role.hear_result(*deadline.args()) for role in workers}
        for role in roles:
            after = role.usage()
            result = results.setdefault(role.name, {})
            result["cpu_ns"] = after[0] - before[role.name][0]
            result["context_switches"] = after[1] - before[role.name][1]
        for role in workers:
            role.process.stdin.close()
        return results
    finally:
        end_all(roles)


def measure_kill(roles, cpus, delay_seconds, start_seconds, limit_seconds, environment=None):
    """Kills the victim while it publishes. Returns the ns until the watcher had a record that the survivor
    began to publish after the kill; None if it got none within the limit."""
    deadline = Deadline(start_seconds)
    by_name = {role.name: role for role in roles}
    try:
        start_all(roles, cpus, deadline, environment)
        for name in ("victim", "survivor", "watcher"):
            by_name[name].expect("warm", *deadline.args())
        by_name["watcher"].others = []  # If another role ends after the kill, wait for the limit.
        time.sleep(delay_seconds)
        killed_ns = time.monotonic_ns()
        by_name["victim"].process.kill()
        by_name["survivor"].say(str(killed_ns))
        by_name["victim"].process.wait()  # Until then its process id is still taken.
        try:
            recovery = by_name["watcher"].hear_result(*Deadline(limit_seconds).args())
        except TooLate:
            return None
        return recovery["recovery_ns"]
    finally:
        end_all(roles)


def end_all(roles):
    for role in roles:
        if role.process is not None and role.process.poll() is None:
            try:
                role.process.kill()
            except ProcessLookupError:
                pass
    for role in roles:
        role.end()


def run_command(command, limit_seconds, environment=None):
    """The output of a program without that protocol. It gets SIGTERM before SIGKILL."""
    def prepare():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment, start_new_session=True, preexec_fn=prepare)
    try:
        output, errors = process.communicate(timeout=limit_seconds)
    except subprocess.TimeoutExpired:
        raise TooLate(f"{command[0]} was not done within {limit_seconds:g} s") from None
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.communicate()
    if process.returncode != 0:
        said = (errors.strip().splitlines() or ["and said nothing"])[0]
        raise Failed(f"{command[0]} ended with {process.returncode}: {said}")
    return output
