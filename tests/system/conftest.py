"""Fixtures of the system tests: the executable, a topic directory for each test, and processes that
never outlive their test.

    def test_says_what_it_wrote(leat):
        leat("pub", "news", input="hello\n", check=True)
        assert leat("sub", "news", "--from", "beginning", "--exit").stdout == "hello\n"

The executable is build/leat, or the one that LEAT_BIN names.
"""
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXECUTABLE = Path(os.environ.get("LEAT_BIN", ROOT / "build" / "leat")).resolve()
LIMIT_SECONDS = 300  # For one test.

sys.path.insert(0, str(ROOT / "tests" / "conformance"))
import run  # pylint: disable=wrong-import-position

# A shell that starts the tests in the background makes them ignore these signals, and the processes that
# the tests start would inherit that.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


def pytest_configure(config):
    config.addinivalue_line("markers", "xdist_group(name): those of one name run in one process")
    try:
        run.chosen()
    except ValueError as wrong:
        raise pytest.UsageError(str(wrong)) from None


def pytest_make_parametrize_id(val):
    """Keeps the ids of tests short: of a long text, its beginning and its length are part of the id."""
    if isinstance(val, (str, bytes)) and len(val) > 80:
        return f"{ascii(val[:20])}...{len(val)}"
    return None


@pytest.hookimpl(tryfirst=True)  # Before the one that reads the groups.
def pytest_collection_modifyitems(items):
    """Tests run in several processes, but in one of them what installs from build/, and in one what looks for
    leftovers of others of its kind in the whole machine. Of clients, only those that CLIENTS chooses are tested."""
    left_out = {f"test_client_{language}.py" for language in run.drivers(run.BUILD)} - {
        f"test_client_{language}.py" for language in run.chosen()}
    for item in items:
        if item.path.name in left_out:
            item.add_marker(pytest.mark.skip(f"left out by CLIENTS={os.environ['CLIENTS']}"))
        for group in ("packaging", "bench"):
            if item.path.name.startswith(f"test_{group}"):
                item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(autouse=True)
def time_limit():
    """Fails a test that hangs, so that the others still run."""
    def late(_signal, _frame):
        pytest.fail(f"not done after {LIMIT_SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT_SECONDS)
    yield
    signal.alarm(0)


@pytest.fixture
def root():
    """The root of the source tree."""
    return ROOT


def directory_in_memory():
    path = Path(tempfile.mkdtemp(prefix="leat-test-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def leat_dir():
    """An empty directory in shared memory, removed after the test."""
    yield from directory_in_memory()


class Leat:
    """Runs the executable on this test's topic directory."""

    def __init__(self, directory):
        self.directory = directory
        self.executable = EXECUTABLE
        self.environment = {**os.environ, "LEAT_DIR": str(directory),
                            "LEAT_DATA_DIR": str(directory / "+data")}  # No test sees the user's own.
        self.started = []

    def __call__(self, *arguments, input=None, timeout=60, check=False, text=True):
        """Runs to the end; returns subprocess.CompletedProcess. check: requires exit code 0."""
        done = subprocess.run([self.executable, *map(str, arguments)], env=self.environment,
                              input=input, stdin=subprocess.DEVNULL if input is None else None,
                              capture_output=True, text=text, timeout=timeout)
        if check:
            assert done.returncode == 0, f"leat {arguments} exited {done.returncode}: {done.stderr}"
        return done

    def start(self, *arguments, text=True, **options):
        """Starts in the background with pipes for all three streams; killed at the end of the test."""
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE,
                   "stderr": subprocess.PIPE, "env": self.environment, **options}
        process = subprocess.Popen([self.executable, *map(str, arguments)], text=text,
                                   start_new_session=True, **options)
        self.started.append(process)
        return process

    def stop_all(self):
        for process in self.started:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # With its children, and even if stopped.
            except ProcessLookupError:
                pass
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        pass


@pytest.fixture
def leat(leat_dir):
    """`leat(…)` runs the executable, `leat.start(…)` leaves it running; both use `leat_dir`."""
    assert EXECUTABLE.exists(), f"{EXECUTABLE} is missing: run `make build` first"
    runner = Leat(leat_dir)
    yield runner
    runner.stop_all()


@pytest.fixture
def many_files():
    """As many descriptors as this process and those it starts may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def serve(leat, tmp_path):
    """`serve(options…)` starts a broker and returns it (broker.Broker) when it is ready."""
    from broker import Broker  # Only here: it needs pyzmq.
    started = []

    def start(*options, **settings):
        path = tmp_path / f"broker-{len(started)}"
        path.mkdir()
        started.append(Broker(leat, path, *options, **settings))
        return started[-1].start()

    yield start
    for broker in started:
        broker.close()


@pytest.fixture
def as_root():
    """For tests that need a second user, a namespace or a mount: fails with the reason if not root."""
    if os.geteuid() != 0:
        pytest.fail("this test needs root (a second user, a namespace or a mount): run as root")
