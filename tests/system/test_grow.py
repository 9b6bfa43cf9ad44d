"""If these tests failed, a topic with `--policy grow` would not grow or shrink, or `leat topic create`,
`set`, `shrink` or `info` would be wrong about it."""
import subprocess
import time

import pytest

from test_cli import info, one_line, wait_until

MIB = 1 << 20


def memory_of(leat, name):
    """The memory of a topic's records file, in bytes."""
    return (leat.directory / name / "records").stat().st_blocks * 512


@pytest.fixture
def topic(leat):
    leat("topic", "create", "t", "--policy", "grow", "--capacity", "1MiB", "--max-capacity", "4MiB",
         "--grow-below", "256KiB", "--segment-size", "128KiB", check=True)
    return "t"


def behind(leat, name, count):
    """Publishes while a stopped subscriber holds the room; returns that subscriber."""
    reader = leat.start("sub", name, "--from", "beginning", stdout=subprocess.DEVNULL)
    wait_until(lambda: info(leat, name)["participants"])
    reader.send_signal(19)  # SIGSTOP
    leat("pub", name, "--generate", "1000", "--count", count, check=True)
    return reader


def test_create_says_how_far_it_grows(leat):
    done = leat("topic", "create", "t", "--policy", "grow", "--capacity", "1MiB", check=True)
    assert done.stdout == "created topic 't': 1 MiB, grows to 8 MiB, records up to 65,520 bytes\n"
    assert memory_of(leat, "t") == MIB


def test_grows_while_somebody_is_behind_and_shrinks_when_all_is_read(leat, topic):
    reader = behind(leat, topic, 2500)
    facts = info(leat, topic)
    assert facts["policy"] == "grow"
    assert 2500 * 1000 < facts["capacity_bytes"] < 4 * MIB
    assert facts["max_capacity_bytes"] == 4 * MIB
    assert facts["partitions"][0]["capacity_bytes"] == facts["capacity_bytes"]
    assert memory_of(leat, topic) == facts["capacity_bytes"]
    assert "freed 0 bytes" in leat("topic", "shrink", topic, check=True).stdout
    reader.send_signal(18)  # SIGCONT
    wait_until(lambda: info(leat, topic)["participants"][0]["lag"] == 0)
    done = leat("topic", "shrink", topic, check=True).stdout
    assert done.startswith("freed ") and "topic 't' has 1 MiB now" in done
    assert memory_of(leat, topic) == MIB
    assert "1 MiB now, at most 4 MiB" in leat("topic", "info", topic, check=True).stdout


def test_waits_at_its_maximum_until_that_is_raised(leat, topic):
    reader = behind(leat, topic, 3000)
    publisher = leat.start("pub", topic, "--generate", "1000", "--count", "3000")
    wait_until(lambda: info(leat, topic)["capacity_bytes"] == 4 * MIB)
    time.sleep(0.1)
    assert publisher.poll() is None
    assert info(leat, topic)["participants"][0]["blocking"]
    done = leat("topic", "set", topic, "--max-capacity", "8MiB", check=True)
    assert done.stdout.startswith("topic 't' grows to 8 MiB; it has ")
    assert publisher.wait(20) == 0
    assert info(leat, topic)["partitions"][0]["end"] == 6000
    reader.kill()


@pytest.mark.parametrize("arguments, words", [
    (["--max-capacity", "16MiB"], ["--max-capacity", "--policy grow"]),
    (["--policy", "block", "--grow-below", "1MiB"], ["--grow-below", "--policy grow"]),
    (["--policy", "grow", "--max-capacity", "1MiB"], ["--max-capacity", "1 MiB", "8 MiB"]),
    (["--policy", "grow", "--max-capacity", "2GiB"], ["--max-capacity", "1 GiB", "--segment-size"]),
    (["--policy", "grow", "--segment-size", "1GiB", "--capacity", "2GiB", "--max-capacity", "200GiB"],
     ["--max-capacity", "200 GiB", "1 GiB"]),
    (["--policy", "grow", "--grow-below", "1GiB"], ["--grow-below", "64 MiB"]),
    (["--policy", "grow", "--retain", "all"], ["--retain", "exclude"]),
    (["--policy", "grow", "--max-capacity", "much"], ["--max-capacity", "'much'"]),
])
def test_options_that_do_not_fit(leat, arguments, words):
    one_line(leat("topic", "create", "t", *arguments), 2, *words)
    assert leat("topic", "list").stdout == ""


def test_only_topics_that_grow_are_resized(leat, topic):
    leat("topic", "create", "fixed", check=True)
    one_line(leat("topic", "shrink", "fixed"), 2, "'fixed'", "block", "grow")
    one_line(leat("topic", "set", "fixed", "--max-capacity", "1GiB"), 2, "'fixed'", "grow")
    one_line(leat("topic", "set", topic), 2, "--max-capacity")
    one_line(leat("topic", "set", topic, "--max-capacity", "1"), 2, "--max-capacity", "1 MiB", "128 MiB")
    one_line(leat("topic", "set", topic, "--max-capacity", "1GiB"), 2, "128 MiB")
    one_line(leat("topic", "set", "nothing", "--max-capacity", "1GiB"), 3, "'nothing'")
    one_line(leat("topic", "shrink", "nothing"), 3, "'nothing'")
