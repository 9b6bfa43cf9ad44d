"""If these tests failed, `leat sub` would begin at the wrong record, not wait for its topic, or not end
when it should."""
import os
import pty
import time
from datetime import datetime, timezone

from test_cli import info, one_line
from test_pub_sub import Reader, attached, heeds_signals, read_all


def test_from_end_is_the_default(leat):
    leat("pub", "t", input="old\n", check=True)
    sub = leat.start("sub", "t", text=False)
    attached(leat, "t")
    leat("pub", "t", input="new\n", check=True)
    assert Reader(sub.stdout).until("\n") == "new\n"


def test_from_offset(leat):
    leat("pub", "t", input="".join(f"{i}\n" for i in range(10)), check=True)
    assert leat("sub", "t", "--from", "7", "--exit", check=True).stdout == "7\n8\n9\n"
    assert leat("sub", "t", "--from", "10", "--exit", check=True).stdout == ""
    leat("topic", "create", "p", "--partitions", "2", check=True)
    leat("pub", "p", "--partition", "1", input="a\nb\n", check=True)
    one_line(leat("sub", "p", "--from", "1", "--exit"), 2, "--partition", "2 partitions")
    assert leat("sub", "p", "--from", "1", "--partition", "1", "--exit", check=True).stdout == "b\n"


def test_from_below_the_oldest_reports_the_gap(leat):
    leat("topic", "create", "t", "--capacity", "64KiB", check=True)
    leat("pub", "t", "--generate", "100", "--count", "5000", check=True)
    start = info(leat, "t")["partitions"][0]["start"]
    assert start > 0
    done = leat("sub", "t", "--from", "0", "--exit", "--format", "%o\\n", check=True)
    assert done.stderr == f"leat: gap of {start} records at offset 0 (partition 0): overwritten\n"
    assert done.stdout.split() == [str(i) for i in range(start, 5000)]


def test_from_a_time(leat):
    leat("topic", "create", "t", "--timestamps", check=True)
    leat("pub", "t", input="before\n", check=True)
    time.sleep(0.01)
    middle = time.time()
    time.sleep(0.01)
    leat("pub", "t", input="after 1\nafter 2\n", check=True)
    as_ms = str(int(middle * 1000))
    utc = datetime.fromtimestamp(middle, timezone.utc)
    shown = utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03}"
    east = datetime.fromtimestamp(middle + 9000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.")
    east += f"{utc.microsecond // 1000:03}+02:30"
    local = datetime.fromtimestamp(middle).strftime("%Y-%m-%d %H:%M:%S.")
    local += f"{utc.microsecond // 1000:03}"
    for place in (as_ms, shown + "Z", shown + "+00:00", east, local):
        assert leat("sub", "t", "--from", "@" + place, "--exit", check=True).stdout == \
            "after 1\nafter 2\n", place
    everything = "before\nafter 1\nafter 2\n"
    assert leat("sub", "t", "--from", "@0", "--exit", check=True).stdout == everything
    assert leat("sub", "t", "--from", "@2001-01-01", "--exit", check=True).stdout == everything
    assert leat("sub", "t", "--from", "@2999-01-01T00:00Z", "--exit", check=True).stdout == ""


def test_from_a_time_without_dashes_and_colons(leat):
    leat("topic", "create", "t", "--timestamps", check=True)
    leat("pub", "t", input="x\n", check=True)
    for place in ("20010101T000000Z", "20010101T0000Z", "20010101T000000.5+0100", "20010101T000000",
                  "2001-01-01T0000Z", "20010101Z"):
        assert leat("sub", "t", "--from", "@" + place, "--exit", check=True).stdout == "x\n", place
    for place in ("29990101T000000Z", "29990101T0000-0100"):
        assert leat("sub", "t", "--from", "@" + place, "--exit", check=True).stdout == "", place
    # Digits alone are milliseconds since 1970: here a time in 1970 and one in 2611.
    assert leat("sub", "t", "--from", "@20240501", "--exit", check=True).stdout == "x\n"
    assert leat("sub", "t", "--from", "@20240501120000", "--exit", check=True).stdout == ""
    for place in ("2001-0101T000000Z", "200101-01T000000Z", "20010101T00000Z", "20010101T00:0000Z",
                  "20010101T0000:00Z", "20010101T240000Z", "20010132T000000Z", "20010101T"):
        one_line(leat("sub", "t", "--from", "@" + place, "--exit"), 2, "--from")


def test_from_beyond_the_end_waits_for_that_offset(leat):
    leat("pub", "t", input="0\n1\n", check=True)
    sub = leat.start("sub", "t", "--from", "4", "--count", "2", "--format", "%o %s\\n")
    attached(leat, "t")
    leat("pub", "t", input="2\n3\n4\n5\n6\n", check=True)
    assert sub.communicate(timeout=20) == ("4 4\n5 5\n", "")


def test_from_a_time_needs_timestamps(leat):
    leat("topic", "create", "t", check=True)
    one_line(leat("sub", "t", "--from", "@0", "--exit"), 2, "--timestamps")


def test_count_leaves_after_so_many(leat):
    leat("pub", "t", "--generate", "4", "--count", "5000", check=True)
    assert leat("sub", "t", "--from", "beginning", "--count", "3", check=True).stdout == \
        "0000\n0001\n0002\n"
    text = leat("sub", "t", "--from", "beginning", "--count", "2500", check=True).stdout
    assert text.splitlines() == [f"{i:04}" for i in range(2500)]


def test_exit_reads_all_partitions_to_their_ends(leat):
    leat("topic", "create", "t", "--partitions", "3", check=True)
    for partition, count in ((0, 10), (1, 3000), (2, 1)):
        leat("pub", "t", "--partition", partition, "--generate", "8", "--count", count, check=True)
    assert len(read_all(leat, "t").splitlines()) == 3011


def test_missing_topic_is_waited_for_and_read_from_its_start(leat):
    sub = leat.start("sub", "t", text=False)
    time.sleep(0.3)
    assert sub.poll() is None
    leat("pub", "t", input="first\nsecond\n", check=True)
    assert Reader(sub.stdout).until("second\n") == "first\nsecond\n"


def test_waiting_is_said_on_a_terminal_only(leat):
    quiet = leat.start("sub", "t")
    mine, theirs = pty.openpty()
    try:
        said = leat.start("sub", "t", stderr=theirs)
        assert "waiting for topic 't'" in Reader(mine).until("\n")
        for process in (quiet, said):
            heeds_signals(process)
            process.terminate()
            assert process.wait(20) == 0
        assert quiet.stderr.read() == ""
    finally:
        os.close(mine)
        os.close(theirs)


def test_waiting_costs_no_processor_time(leat):
    leat("topic", "create", "t", check=True)
    waiting = [leat.start("sub", "t"), leat.start("sub", "missing"), leat.start("pub", "t")]
    attached(leat, "t", 2)

    def ticks():
        used = 0
        for process in waiting:
            with open(f"/proc/{process.pid}/stat", encoding="utf-8") as stat:
                used += sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))
        return used
    before = ticks()
    time.sleep(3)
    assert ticks() - before <= 1  # Of 300 ticks.
