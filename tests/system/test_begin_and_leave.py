"""If these tests failed, `leat sub` would begin at the wrong record, not wait for its topic, or not end
when it should."""
import json
import subprocess
import time
from datetime import datetime, timezone

import pytest

from test_cli import info, one_line, wait_until
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
    assert done.stderr == f"leat: gap of {start} records at offset 0 (partition 0): overwritten; next is offset {start}\n"
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
    assert sub.stderr.readline() == "leat: topic 't' ends at 2; waiting for 4\n"
    leat("pub", "t", input="2\n3\n4\n5\n6\n", check=True)
    assert sub.communicate(timeout=20) == ("4 4\n5 5\n", "")


def test_offset_of_a_topic_that_was_made_anew_is_an_error_with_exit(leat):
    leat("pub", "t", *"0123456789", check=True)
    leat("rm", "t", check=True)
    leat("pub", "t", "a", "b", check=True)
    done = leat("sub", "t", "--from", "10", "--exit")
    one_line(done, 3, "topic 't' ends at 2, before offset 10", "made anew", "leat topic info t")
    assert done.stdout == ""
    at_end = leat("sub", "t", "--from", "2", "--exit", check=True)
    assert (at_end.stdout, at_end.stderr) == ("", "")
    one_line(leat("sub", "t", "--from", "10", "--exit", "--group", "g"), 2, "no such offset", "it ends at 2")


def test_offset_beyond_the_end_of_a_partition(leat):
    leat("topic", "create", "t", "--partitions", "2", check=True)
    leat("pub", "t", "-p", "1", "a", "b", check=True)
    assert leat("sub", "t", "-p", "1", "--from", "1", "--exit", check=True).stdout == "b\n"
    one_line(leat("sub", "t", "-p", "1", "--from", "3", "--exit"), 3, "partition 1 of topic 't' ends at 2,")
    leat("group", "create", "t", "g", check=True)
    one_line(leat("group", "seek", "t", "g", "3", "-p", "1"), 2, "partition 1 of topic 't'", "it ends at 2")


def test_offset_of_a_topic_that_is_waited_for(leat):
    sub = leat.start("sub", "t", "--from", "1", "--count", "1")
    assert "waiting for topic 't'" in sub.stderr.readline()
    leat("topic", "create", "t", check=True)
    assert sub.stderr.readline() == "leat: topic 't' ends at 0; waiting for 1\n"
    leat("pub", "t", "a", "b", check=True)
    assert sub.communicate(timeout=20) == ("b\n", "")


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


@pytest.mark.parametrize("options", [[], ["--from", "beginning"], ["--group", "g"]], ids=" ".join)
def test_waiting_for_a_topic_is_said(leat, options):
    leat("topic", "create", "news", check=True)
    sub = leat.start("sub", "nwes", *options)
    assert sub.stderr.readline() == (
        "leat: waiting for topic 'nwes', which does not exist yet (did you mean 'news'?)\n")
    leat("pub", "nwes", "hello", check=True)
    assert sub.stdout.readline() == "hello\n"
    heeds_signals(sub)
    sub.terminate()
    assert sub.wait(20) == 0
    said = sub.stderr.read()
    assert said == "" or "--group" in options and said.startswith("leat: created group 'g' of topic 'nwes': ")


def test_beginning_that_is_not_the_first_record_is_explained(leat):
    leat("topic", "create", "t", "--capacity", "64KiB", check=True)
    leat("pub", "t", "--generate", "100", "--count", "5000", check=True)
    start = info(leat, "t")["partitions"][0]["start"]
    assert start > 0
    for place in ("beginning", "earliest"):
        done = leat("sub", "t", "--from", place, "--exit", check=True)
        one_line(subprocess.CompletedProcess([], 0, "", done.stderr), 0,
                 f"topic 't' begins at offset {start:,}: ", "overwritten", "no subscriber", "--retain all")
        assert done.stdout.splitlines()[0] == f"{start:0100}"
    done = leat("sub", "t", "--from", "beginning", "--group", "g", "-n", "1", check=True)
    assert f"topic 't' begins at offset {start:,}: " in done.stderr
    assert done.stdout == f"{start:0100}\n"
    assert "begins at" not in leat("sub", "t", "--group", "g", "-n", "1", check=True).stderr
    # Whoever does not ask for the beginning need not know; nor is there anything to say of a whole topic.
    assert leat("sub", "t", "--from", "-3", "--exit", check=True).stderr == ""
    leat("pub", "whole", "x", check=True)
    assert leat("sub", "whole", "--from", "beginning", "--exit", check=True).stderr == ""


def test_beginning_of_several_partitions_is_explained(leat):
    leat("topic", "create", "t", "--capacity", "64KiB", "--partitions", "2", check=True)
    leat("pub", "t", "--partition", "1", "--generate", "100", "--count", "5000", check=True)
    start = info(leat, "t")["partitions"][1]["start"]
    done = leat("sub", "t", "--from", "beginning", "--exit", check=True)
    one_line(subprocess.CompletedProcess([], 0, "", done.stderr), 0,
             f"topic 't' begins at offsets 0 {start:,} of its partitions: ")
    only = leat("sub", "t", "--from", "beginning", "--exit", "--partition", "0", check=True)
    assert (only.stdout, only.stderr) == ("", "")


def test_from_latest_is_the_end_and_earliest_the_beginning(leat):
    leat("pub", "t", "a", "b", check=True)
    assert leat("sub", "t", "--from", "latest", "--exit", check=True).stdout == ""
    assert leat("sub", "t", "--from", "earliest", "--exit", check=True).stdout == "a\nb\n"
    assert leat("group", "create", "t", "g", "--from", "earliest", check=True).stdout == (
        "created group 'g' of topic 't', from earliest\n")
    assert leat("sub", "t", "--group", "g", "--exit", check=True).stdout == "a\nb\n"


def test_from_minus_n_is_the_last_n_of_each_partition(leat):
    leat("topic", "create", "t", "--partitions", "2", check=True)
    for partition, count in ((0, 5), (1, 2)):
        leat("pub", "t", "--partition", partition, *(f"{partition}{i}" for i in range(count)), check=True)
    for place, expected in (("-1", ["04", "11"]), ("-3", ["02", "03", "04", "10", "11"]), ("-0", []),
                            ("-100", ["00", "01", "02", "03", "04", "10", "11"])):
        done = leat("sub", "t", "--from", place, "--exit", check=True)
        assert (sorted(done.stdout.split()), done.stderr) == (expected, ""), place
    assert leat("sub", "t", "-o-2", "-p", "0", "-e", check=True).stdout == "03\n04\n"
    leat("group", "create", "t", "g", "--from", "-1", check=True)
    assert sorted(leat("sub", "t", "--group", "g", "--exit", check=True).stdout.split()) == ["04", "11"]
    leat("group", "seek", "t", "g", "--partition", "0", "--", "-2", check=True)
    assert leat("sub", "t", "--group", "g", "--exit", check=True).stdout == "03\n04\n"


def test_from_a_duration_is_what_is_not_older(leat):
    leat("topic", "create", "t", "--timestamps", check=True)
    leat("pub", "t", "old", check=True)
    time.sleep(1.2)
    leat("pub", "t", "new", check=True)
    assert leat("sub", "t", "--from", "1h", "--exit", check=True).stdout == "old\nnew\n"
    assert leat("sub", "t", "--from", "1s", "--exit", check=True).stdout == "new\n"
    assert leat("sub", "t", "--from", "1us", "--exit", check=True).stdout == ""
    leat("topic", "create", "plain", check=True)
    one_line(leat("sub", "plain", "--from", "1h", "--exit"), 2, "--from 1h", "'plain'", "--timestamps")
    one_line(leat("group", "create", "plain", "g", "--from", "1h"), 2, "--from 1h", "--timestamps")


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


# --- --timeout ------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [[], ["--group", "g"]], ids=lambda options: " ".join(options) or "alone")
def test_timeout_without_a_record_is_an_error(leat, options):
    leat("pub", "t", "old", check=True)
    leat("group", "create", "t", "g", check=True)
    done = leat("sub", "t", "--timeout", "100ms", *options)
    one_line(done, 1, "no record came within 100ms")
    assert done.stdout == "" and info(leat, "t")["participants"] == []


def test_timeout_after_records(leat):
    leat("pub", "t", "a", "b", check=True)
    leat("group", "create", "t", "g", "--from", "beginning", check=True)
    for options in (["--from", "beginning"], ["--group", "g"]):
        done = leat("sub", "t", "--timeout", "100ms", *options)
        one_line(done, 1, "no record came within 100ms")
        assert done.stdout == "a\nb\n"
    # Whoever gets what was asked for does not wait.
    assert leat("sub", "t", "--from", "beginning", "--timeout", "1h", "--count", "2", check=True).stdout == "a\nb\n"
    assert leat("sub", "t", "--from", "beginning", "--timeout", "1h", "--exit", check=True).stdout == "a\nb\n"


def test_timeout_is_counted_from_the_last_record(leat):
    leat("topic", "create", "t", check=True)
    sub = leat.start("sub", "t", "--timeout", "1500ms")
    attached(leat, "t")
    pub = leat.start("pub", "t")
    begin = time.monotonic()
    count = 0
    while time.monotonic() < begin + 1.8:
        pub.stdin.write(f"{count}\n")
        pub.stdin.flush()
        count += 1
        time.sleep(0.05)
    output, errors = sub.communicate(timeout=20)
    assert sub.returncode == 1 and errors == "leat: no record came within 1500ms\n"
    assert output.split() == [str(i) for i in range(count)]


def test_timeout_while_topics_are_missing(leat):
    for options in ([], ["--group", "g"], ["--from", "beginning"]):
        done = leat("sub", "a", "--timeout", "100ms", *options)
        assert done.returncode == 3
        assert done.stderr.splitlines()[1:] == ["leat: topic 'a' was not created within 100ms"]
    done = leat("sub", "a", "b", "--timeout", "100ms")
    assert done.returncode == 3
    assert done.stderr.splitlines()[2:] == ["leat: none of the topics was created within 100ms"]
    leat("topic", "create", "b", check=True)
    done = leat("sub", "a", "b", "--timeout", "100ms")
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == ["leat: no record came within 100ms"]


def test_timeout_ends_the_wait_for_what_other_members_hold(leat):
    leat("pub", "t", "--generate", "5000", "--count", "64", check=True)
    leat("group", "create", "t", "g", "--from", "beginning", check=True)
    holder = leat.start("sub", "t", "--group", "g")  # Its pipe is full long before it has written all.
    wait_until(lambda: json.loads(leat("group", "info", "t", "g", "--json", check=True).stdout)["lag"] == 0)
    done = leat("sub", "t", "--group", "g", "--exit", "--timeout", "100ms")
    one_line(done, 1, "no record came within 100ms")
    assert holder.poll() is None


@pytest.mark.parametrize("value", ["0s", "5", "soon"])
def test_timeout_is_a_duration(leat, value):
    one_line(leat("sub", "t", "--timeout", value), 2, "--timeout", f"'{value}'", "500ms")


# --- --no-create ----------------------------------------------------------------------------------

def test_no_create_refuses_what_is_missing(leat):
    one_line(leat("sub", "nwes", "--no-create"), 3, "'nwes'", "topic list")
    leat("pub", "news", "a", check=True)
    leat("group", "create", "news", "workers", "--from", "beginning", check=True)
    one_line(leat("sub", "news", "nwes", "--no-create"), 3, "'nwes'", "did you mean 'news'?")
    one_line(leat("sub", "nwes", "--no-create", "--group", "workers"), 3, "'nwes'")
    one_line(leat("sub", "news", "--no-create", "--group", "wokers"), 3, "no group 'wokers'",
             "did you mean 'workers'?", "leat group list news")
    assert [one["name"] for one in info(leat, "news")["groups"]] == ["workers"]
    assert leat("sub", "news", "--no-create", "--group", "workers", "--exit", check=True).stdout == "a\n"
    assert leat("sub", "news", "--no-create", "--from", "0", "--count", "1", check=True).stdout == "a\n"
    one_line(leat("sub", "news", "--no-create", "--group", "workers", "--from", "0", "--lease", "1s"), 2,
             "--from, --lease", "--no-create")
