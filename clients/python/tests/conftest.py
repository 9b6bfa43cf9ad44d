"""Fixtures of the Python client's tests: a directory of topics for each test, and one topic in it.

Run: PYTHONPATH=build/clients/python python3 -m pytest clients/python/tests.
"""
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILT = ROOT / "build" / "clients" / "python"
if "PYTHONPATH" not in os.environ and BUILT.is_dir():
    sys.path.insert(0, str(BUILT))
    os.environ["PYTHONPATH"] = str(BUILT)

import leat  # noqa: E402  Found only now.

LIMIT_SECONDS = 120  # For one test.
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")

# A shell that starts the tests in the background makes them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def time_limit():
    def late(_signal, _frame):
        pytest.fail(f"not done after {LIMIT_SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT_SECONDS)
    yield
    signal.alarm(0)


@pytest.fixture(autouse=True)
def directory(monkeypatch):
    """Where the test's topics are."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = tempfile.mkdtemp(prefix="leat-python-", dir=base)
    monkeypatch.setenv("LEAT_DIR", path)
    monkeypatch.setenv("LEAT_DATA_DIR", os.path.join(path, "data"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def topic():
    with leat.Topic.create("topic", timestamps=True) as topic:
        yield topic


@pytest.fixture
def publisher(topic):
    with topic.publisher() as publisher:
        yield publisher


@pytest.fixture
def subscriber(topic):
    with topic.subscriber(from_="beginning") as subscriber:
        yield subscriber
