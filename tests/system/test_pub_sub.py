"""If these tests failed, `leat pub` and `leat sub` would lose or change lines, keys or headers, or not
continue when the other one is killed."""
import json
import os
import re
import select
import signal
import subprocess
import time

import pytest

from test_cli import info, one_line, wait_until


class Reader:
    """Reads what a process writes, with a deadline."""

    def __init__(self, pipe):
        self.fd = pipe if isinstance(pipe, int) else pipe.fileno()
        self.text = ""

    def until(self, wanted, seconds=20):
        """Waits for `wanted` (a string, or a function of the text); returns everything read so far."""
        is_there = wanted if callable(wanted) else lambda text: wanted in text
        end = time.monotonic() + seconds
        while not is_there(self.text):
            left = end - time.monotonic()
            assert left > 0, f"only this came: {self.text[-500:]!r}"
            if select.select([self.fd], [], [], left)[0]:
                data = os.read(self.fd, 1 << 16)
                assert data, f"it ended after: {self.text[-500:]!r}"
                self.text += data.decode()
        return self.text


def attached(leat, topic, count=1):
    """Waits until the topic has `count` participants."""
    def look():
        done = leat("topic", "info", topic, "--json")
        return done.returncode == 0 and len(json.loads(done.stdout)["participants"]) == count
    wait_until(look)


def read_all(leat, topic, *options, text=True):
    return leat("sub", topic, "--from", "beginning", "--exit", *options, check=True,
                text=text).stdout


def read_json(leat, topic, *options):
    lines = read_all(leat, topic, "--json", *options).split("\n")
    assert lines.pop() == ""
    return [json.loads(line) for line in lines]


def send(process, text):
    process.stdin.write(text)
    process.stdin.flush()


# --- Lines ----------------------------------------------------------------------------------------

def test_lines_arrive_as_they_were_and_the_last_needs_no_newline(leat):
    leat("pub", "t", input="one\n\n  three \r\nlast", check=True)
    assert [record["value"] for record in read_json(leat, "t")] == ["one", "", "  three \r", "last"]
    assert read_all(leat, "t", text=False) == b"one\n\n  three \r\nlast\n"


def test_nothing_in_nothing_out(leat):
    leat("pub", "t", input="", check=True)
    assert read_all(leat, "t") == ""


def test_any_bytes_but_newlines_pass_through(leat):
    data = bytes(byte for byte in range(256) if byte != 10)
    leat("pub", "t", input=data + b"\n", check=True, text=False)
    assert read_all(leat, "t", "--format", "%s", text=False) == data


def test_many_lines_from_a_file_arrive_in_order(leat, tmp_path):
    lines = "".join(f"{i} {'x' * (i * 7 % 300)}\n" for i in range(50_000))
    (tmp_path / "lines").write_text(lines, encoding="utf-8")
    leat("topic", "create", "t", "--retain", "all", "--capacity", "32MiB", check=True)
    leat("pub", "t", "--file", tmp_path / "lines", check=True)
    assert read_all(leat, "t") == lines


def test_missing_topic_is_made_and_that_is_said(leat):
    done = leat("pub", "t", input="x\n", check=True)
    assert done.stdout == "" and re.fullmatch(r"leat: created topic 't' \(8 MiB.*\)\n", done.stderr)
    assert leat("pub", "t", input="y\n", check=True).stderr == ""
    assert read_all(leat, "t") == "x\ny\n"


def test_each_line_is_sent_as_soon_as_it_comes(leat):
    leat("topic", "create", "t", check=True)
    sub = leat.start("sub", "t", text=False)
    attached(leat, "t")
    pub = leat.start("pub", "t")
    output = Reader(sub.stdout)
    for i in range(20):
        send(pub, f"line {i}\n")
        output.until(f"line {i}\n")
    assert pub.poll() is None and sub.poll() is None


def test_generated_records_are_numbers_of_the_size_asked_for(leat):
    leat("pub", "t", "--generate", "5", "--count", "12", check=True)
    assert read_all(leat, "t").split() == [f"{i:05}" for i in range(12)]
    leat("pub", "small", "--generate", "1", "--count", "12", check=True)
    assert read_all(leat, "small").split() == list("012345678901")
    leat("pub", "sized", "--generate", "2KiB", "--count", "1", check=True)
    assert read_all(leat, "sized", "--format", "%S") == "2048"


def test_count_ends_the_reading_of_lines(leat):
    leat("pub", "t", "--count", "2", input="1\n2\n3\n", check=True)
    assert read_all(leat, "t") == "1\n2\n"


def test_line_that_is_too_large_is_refused_with_the_limit(leat):
    limit = 524_272
    leat("pub", "t", input="a\n" + "x" * limit + "\n", check=True)
    done = leat("pub", "t", input="b\n" + "x" * (limit + 1) + "\nc\n")
    one_line(done, 2, "line 2", "524,273 bytes", "at most 524,272 bytes", "--segment-size 2MiB",
             "1 record was sent", "the lines after it were not")
    # The same for a line without an end, and for a key and value that are too large together.
    one_line(leat("pub", "t", input="x" * 3_000_000), 2, "line 1", "3,000,000 bytes",
             "at most 524,272 bytes", "--segment-size 8MiB --capacity 16MiB", "0 records were sent")
    done = leat("pub", "t", "--key-separator", ":", input="k:" + "x" * limit + "\n")
    one_line(done, 2, "524,274 bytes with key and headers", "at most 524,272 bytes")
    one_line(leat("pub", "t", "--generate", "1MiB", "--count", "1"), 2, "1,048,576 bytes",
             "at most 524,272 bytes", "--segment-size 4MiB")
    assert [len(line) for line in read_all(leat, "t").splitlines()] == [1, limit, 1]


@pytest.mark.parametrize("size", [524_273, 1_048_560, 1_048_561, 3_000_000])
def test_topic_that_is_named_for_a_long_line_takes_it(leat, size):
    leat("topic", "create", "t", check=True)
    refused = leat("pub", "t", input="x" * size + "\n").stderr
    options = re.search(r"makes with ((?:--[a-z-]+ \w+ ?)+) takes it", refused).group(1).split()
    leat("topic", "create", "larger", *options, check=True)
    leat("pub", "larger", input="x" * size + "\n", check=True)
    assert len(read_all(leat, "larger")) == size + 1


def test_line_that_no_topic_takes(leat):
    leat("topic", "create", "t", check=True)
    one_line(leat("pub", "t", "--generate", "1GiB", "--count", "1"), 2, "1,073,741,824 bytes",
             "no topic takes more than 536,870,896")


# --- Keys, headers, partitions --------------------------------------------------------------------

def test_key_is_what_stands_before_the_separator(leat):
    leat("pub", "t", "--key-separator", ":", input="k1:v1\nno key\n:empty key\nk2:v:2\n", check=True)
    records = read_json(leat, "t")
    assert [(r.get("key"), r["value"]) for r in records] == [
        ("k1", "v1"), (None, "no key"), ("", "empty key"), ("k2", "v:2")]
    assert read_all(leat, "t", "--format", "%k=%s(%K)\\n").splitlines() == [
        "k1=v1(2)", "=no key(-1)", "=empty key(0)", "k2=v:2(2)"]


@pytest.mark.parametrize("separator, line", [("\\t", "k\tv"), ("=>", "k=>v"), (" ", "k v")])
def test_separators(leat, separator, line):
    leat("pub", "t", "--key-separator", separator, input=line + "\n", check=True)
    record, = read_json(leat, "t")
    assert (record["key"], record["value"]) == ("k", "v")


def test_headers(leat):
    leat("pub", "t", "--header", "a=1", "--header", "b=x=y", "--header", "c=", input="v\n",
         check=True)
    record, = read_json(leat, "t")
    assert record["headers"] == {"a": "1", "b": "x=y", "c": ""} and record["value"] == "v"
    assert read_all(leat, "t", "--format", "%h|%s") == "a=1,b=x=y,c=|v"
    leat("pub", "twice", "--header", "n=1", "--header", "n=2", input="v\n", check=True)
    record, = read_json(leat, "twice")
    assert record["headers"] == {"n": ["1", "2"]}


def test_equal_keys_stay_together_and_in_order(leat):
    leat("topic", "create", "t", "--partitions", "4", check=True)
    lines = [f"key{i % 20}:{i}" for i in range(1000)]
    leat("pub", "t", "--key-separator", ":", input="\n".join(lines), check=True)
    records = read_json(leat, "t")
    assert len(records) == 1000
    partition_of = {}
    last = {}
    for record in records:
        key = record["key"]
        assert partition_of.setdefault(key, record["partition"]) == record["partition"]
        assert int(record["value"]) > last.get(key, -1)
        last[key] = int(record["value"])
    assert set(partition_of.values()) == {0, 1, 2, 3}
    for partition in range(4):
        part = read_json(leat, "t", "--partition", partition)
        assert [r["offset"] for r in part] == list(range(len(part)))
        assert {r["partition"] for r in part} <= {partition}


def test_named_partition_wins(leat):
    leat("topic", "create", "t", "--partitions", "3", check=True)
    leat("pub", "t", "--partition", "2", input="a\nb\n", check=True)
    leat("pub", "t", "--partition", "1", "--key-separator", ":", input="k:c\n", check=True)
    assert {(r["partition"], r["value"]) for r in read_json(leat, "t")} == {(2, "a"), (2, "b"),
                                                                          (1, "c")}
    assert read_all(leat, "t", "--partition", "2") == "a\nb\n"
    one_line(leat("pub", "t", "--partition", "3", input="x\n"), 2, "no partition 3", "0 to 2")
    one_line(leat("sub", "t", "--partition", "3"), 2, "no partition 3", "0 to 2")


def test_publisher_without_key_stays_in_one_partition(leat):
    leat("topic", "create", "t", "--partitions", "2", check=True)
    for name in ("a", "b"):
        leat("pub", "t", input=f"{name}1\n{name}2\n{name}3\n", check=True)
    partitions = {}
    for record in read_json(leat, "t"):
        partitions.setdefault(record["value"][0], set()).add(record["partition"])
    assert partitions == {"a": {0}, "b": {1}} or partitions == {"a": {1}, "b": {0}}


def heeds_signals(process):
    """Waits until the thread that handles signals has started."""
    wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 2)


# --- Ends -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_them_cleanly(leat, end):
    leat("topic", "create", "t", check=True)
    processes = [leat.start("sub", "t"), leat.start("sub", "missing"), leat.start("pub", "t")]
    attached(leat, "t", 2)
    for process in processes:
        heeds_signals(process)
        process.send_signal(end)
    for process, code, said in zip(processes, [0, 0, 128 + end], [
            "", "leat: waiting for topic 'missing', which does not exist yet\n",
            f"leat: stopped by {end.name}; 0 lines were published\n"]):
        assert (process.wait(20), process.stderr.read()) == (code, said)
    assert info(leat, "t")["participants"] == []


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_says_how_many_lines_were_published(leat, end):
    leat("topic", "create", "t", check=True)
    pub = leat.start("pub", "t")
    send(pub, "one\ntwo\nthr")
    wait_until(lambda: info(leat, "t")["partitions"][0]["end"] == 2)
    pub.send_signal(end)
    assert pub.wait(20) == 128 + end
    assert pub.stderr.read() == (
        f"leat: stopped by {end.name}; 2 lines were published, the unfinished one was not\n")
    assert read_all(leat, "t") == "one\ntwo\n"


def test_signal_while_the_topic_is_full_says_what_was_sent(leat):
    leat("topic", "create", "t", "--capacity", "64KiB", check=True)
    sub = leat.start("sub", "t")
    attached(leat, "t")
    sub.send_signal(signal.SIGSTOP)
    pub = leat.start("pub", "t", "--generate", "100", "--count", "100000")
    wait_until(lambda: any(one["blocking"] for one in info(leat, "t")["participants"]))
    pub.terminate()
    assert pub.wait(20) == 143
    sent = re.fullmatch(r"leat: stopped by SIGTERM; ([\d,]+) of 100,000 records were published\n",
                        pub.stderr.read())
    assert int(sent.group(1).replace(",", "")) == info(leat, "t")["partitions"][0]["end"]


def test_signal_ends_a_subscriber_that_nobody_reads(leat):
    leat("pub", "t", "--generate", "1000", "--count", "2000", check=True)
    sub = leat.start("sub", "t", "--from", "beginning")  # Its pipe is full after 64 KiB.
    attached(leat, "t")
    time.sleep(0.3)
    assert sub.poll() is None
    sub.terminate()
    assert sub.wait(20) == 0


def test_closed_output_is_a_quiet_end(leat):
    leat("pub", "t", "--generate", "100", "--count", "20000", check=True)
    sub = leat.start("sub", "t", "--from", "beginning")
    assert sub.stdout.readline() == "0" * 100 + "\n"
    sub.stdout.close()
    assert sub.wait(20) == 0
    assert sub.stderr.read() == ""


def test_output_that_is_full_is_an_error(leat):
    leat("pub", "t", input="x\n", check=True)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([leat.executable, "sub", "t", "--from", "beginning", "--exit"],
                              env=leat.environment, stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60)
    one_line(done, 6, "standard output", "No space left")


# --- Full topics ----------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [["--retain", "all"], ["--policy", "fail"]], ids=" ".join)
def test_full_topic_that_does_not_wait(leat, options):
    leat("topic", "create", "t", "--capacity", "64KiB", *options, check=True)
    sub = leat.start("sub", "t")  # Will be stopped, and then holds all the room.
    attached(leat, "t")
    sub.send_signal(signal.SIGSTOP)
    done = leat("pub", "t", "--generate", "1000", "--count", "1000")
    one_line(done, 6, "'t'", "full")
    sent = int(re.search(r"; (\d+) records were sent before", done.stderr).group(1))
    assert 0 < sent < 70 and info(leat, "t")["partitions"][0]["end"] == sent


def test_second_publisher_of_a_single_writer_topic_is_told_who_is_first(leat):
    leat("topic", "create", "t", "--single-writer", check=True)
    first = leat.start("pub", "t")
    attached(leat, "t")
    one_line(leat("pub", "t", input="x\n"), 3, f"pid {first.pid}", "one publisher")
    first.kill()
    first.wait()
    leat("pub", "t", input="y\n", check=True)
    assert read_all(leat, "t") == "y\n"


def test_no_place_for_another_participant(leat):
    leat("topic", "create", "t", "--participants", "2", check=True)
    subs = [leat.start("sub", "t") for _ in range(2)]
    attached(leat, "t", 2)
    one_line(leat("pub", "t", input="x\n"), 3, "--participants")
    subs[0].kill()
    subs[0].wait()
    leat("pub", "t", input="x\n", check=True)


def test_overwriting_topic_is_read_lossy_with_a_note(leat):
    leat("topic", "create", "t", "--policy", "overwrite", "--capacity", "64KiB", check=True)
    leat("pub", "t", "--generate", "10", "--count", "10", check=True)
    done = leat("sub", "t", "--from", "beginning", "--exit", check=True)
    assert len(done.stdout.splitlines()) == 10
    one_line(subprocess.CompletedProcess([], 0, "", done.stderr), 0, "'t'", "--lossy")
    assert leat("sub", "t", "--lossy", "--from", "beginning", "--exit", check=True).stderr == ""


@pytest.mark.parametrize("policy", ["block", "overwrite"])
def test_records_and_gaps_of_a_lossy_reader_tile_the_offsets(leat, policy, tmp_path):
    count = 200_000
    leat("topic", "create", "t", "--policy", policy, "--capacity", "64KiB", check=True)
    # Output goes to files, because with pipes it would wait for their readers; there may be many gaps.
    with open(tmp_path / "out", "w", encoding="utf-8") as out, \
            open(tmp_path / "gaps", "w", encoding="utf-8") as gaps:
        sub = leat.start("sub", "t", "--lossy", "--count", "10000000", "--format", "%o %s\\n",
                         stdout=out, stderr=gaps)
    attached(leat, "t")
    pub = leat.start("pub", "t", "--generate", "50", "--count", count)
    while pub.poll() is None:  # Each stop may make it miss records.
        sub.send_signal(signal.SIGSTOP)
        time.sleep(0.02)
        sub.send_signal(signal.SIGCONT)
        time.sleep(0.002)
    assert pub.returncode == 0

    def finished():
        who = [one for one in info(leat, "t")["participants"] if one["role"] == "lossy-subscriber"]
        return who[0]["offset"] == count
    wait_until(finished)
    sub.terminate()
    assert sub.wait(20) == 0
    pieces = [(int(first), int(lost)) for lost, first in
              re.findall(r"leat: gap of (\d+) records? at offset (\d+) \(partition 0\): overwritten",
                         (tmp_path / "gaps").read_text(encoding="utf-8"))]
    assert pieces
    for line in (tmp_path / "out").read_text(encoding="utf-8").splitlines():
        offset, value = line.split()
        assert int(value) == int(offset)
        pieces.append((int(offset), 1))
    expected = 0
    for first, length in sorted(pieces):
        assert first == expected
        expected += length
    assert expected == count


def test_evicted_subscriber_is_told(leat):
    leat("topic", "create", "t", "--capacity", "64KiB", "--evict-after", "50ms", check=True)
    sub = leat.start("sub", "t", "--format", "%o\\n", stdout=subprocess.DEVNULL)
    attached(leat, "t")
    sub.send_signal(signal.SIGSTOP)
    leat("pub", "t", "--generate", "100", "--count", "5000", check=True)
    sub.send_signal(signal.SIGCONT)
    errors = Reader(sub.stderr).until(lambda text: text.count("\n") >= 2)
    assert "too slow for topic 't'" in errors and "overwritten" in errors


# --- Death ----------------------------------------------------------------------------------------

def test_publisher_is_killed_and_another_goes_on(leat):
    sub = leat.start("sub", "t", "--format", "%o %s\\n", text=False)
    output = Reader(sub.stdout)
    for i in range(5):
        pub = leat.start("pub", "t")
        send(pub, f"from publisher {i}\n")
        output.until(f"{i} from publisher {i}\n")
        pub.kill()
        pub.wait()
    leat("pub", "t", input="the end\n", check=True)
    assert output.until("the end\n").splitlines() == [
        f"{i} from publisher {i}" for i in range(5)] + ["5 the end"]


def test_publisher_killed_in_full_flight_loses_nothing_that_came_before(leat, tmp_path):
    leat("topic", "create", "t", check=True)
    with open(tmp_path / "out", "w", encoding="utf-8") as out:
        sub = leat.start("sub", "t", "--format", "%o %s\\n", stdout=out)
    attached(leat, "t")
    for _ in range(5):
        pub = leat.start("pub", "t", "--generate", "30", "--count", "100000000")
        time.sleep(0.1)
        pub.kill()
        pub.wait()
    leat("pub", "t", input="the end\n", check=True)
    wait_until(lambda: (tmp_path / "out").read_text(encoding="utf-8").endswith("the end\n"), 60)
    sub.terminate()
    assert sub.wait(20) == 0
    gaps = {int(first): int(lost) for lost, first in
            re.findall(r"gap of (\d+) records? at offset (\d+) \(partition 0\): died",
                       sub.stderr.read())}
    expected = 0
    number = 0  # What the current publisher sends next.
    with open(tmp_path / "out", encoding="utf-8") as lines:
        for line in lines:
            offset, value = line.rstrip("\n").split(" ", 1)
            if int(offset) in range(expected, expected + 6) and expected in gaps:
                expected += gaps.pop(expected)
            assert int(offset) == expected
            expected += 1
            if value == "the end":
                break
            assert int(value) in (number, 0)
            number = int(value) + 1
    assert not gaps and expected > 1000


def test_subscriber_is_killed_while_it_blocks_and_the_publisher_goes_on(leat):
    leat("topic", "create", "t", "--capacity", "64KiB", check=True)
    sub = leat.start("sub", "t", stdout=subprocess.DEVNULL)
    attached(leat, "t")
    sub.send_signal(signal.SIGSTOP)
    pub = leat.start("pub", "t", "--generate", "100", "--count", "5000")
    wait_until(lambda: any(one["blocking"] for one in info(leat, "t")["participants"]))
    sub.kill()
    assert pub.wait(20) == 0
    assert info(leat, "t")["partitions"][0]["end"] == 5000


def test_subscriber_is_killed_and_another_goes_on_where_it_was(leat):
    leat("topic", "create", "t", "--retain", "all", check=True)
    pub = leat.start("pub", "t")
    first = leat.start("sub", "t", "--from", "beginning", "--format", "%o %s\\n", text=False)
    send(pub, "a\nb\n")
    Reader(first.stdout).until("1 b\n")
    first.kill()
    first.wait()
    send(pub, "c\n")
    second = leat.start("sub", "t", "--from", "2", "--format", "%o %s\\n", text=False)
    output = Reader(second.stdout)
    send(pub, "d\n")
    assert output.until("d\n") == "2 c\n3 d\n"


def test_several_publishers_and_subscribers_at_once(leat, tmp_path):
    leat("topic", "create", "t", "--capacity", "256KiB", check=True)
    subs = []
    for i in range(3):
        with open(tmp_path / f"out{i}", "w", encoding="utf-8") as out:
            subs.append(leat.start("sub", "t", "--count", "6000", stdout=out))
    attached(leat, "t", 3)
    pubs = []
    for name in "ab":
        (tmp_path / name).write_text("".join(f"{name} {i}\n" for i in range(3000)))
        pubs.append(leat.start("pub", "t", "--file", tmp_path / name))
    for process in pubs + subs:
        assert process.wait(60) == 0
    outputs = [(tmp_path / f"out{i}").read_text().splitlines() for i in range(3)]
    assert outputs[0] == outputs[1] == outputs[2]
    for name in "ab":
        mine = [line for line in outputs[0] if line.startswith(name)]
        assert mine == [f"{name} {i}" for i in range(3000)]


def test_input_that_cannot_be_read_is_an_error(leat):
    done = leat.start("pub", "t", stdin=os.open("/dev/null", os.O_WRONLY))
    _, errors = done.communicate(timeout=20)
    assert done.returncode == 1
    assert errors.endswith("leat: cannot read standard input: Bad file descriptor; "
                           "0 records were sent before\n")


# Simulates somebody who always creates the topic just after it was missing and deletes it just before it
# is opened: the call that gives a finished topic directory its name always fails.
ALWAYS_TOO_LATE = r"""
#include <errno.h>
#include <string.h>
int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
  (void)from_directory, (void)from, (void)to_directory, (void)to, (void)flags;
  errno = EEXIST;
  return -1;
}
"""


@pytest.fixture
def too_late(leat, tmp_path):
    source = tmp_path / "too_late.c"
    source.write_text(ALWAYS_TOO_LATE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "too_late.so", source], check=True)
    leat.environment["LD_PRELOAD"] = str(tmp_path / "too_late.so")
    return leat


def test_pub_gives_up_on_a_topic_that_comes_and_goes(too_late):
    one_line(too_late("pub", "t", timeout=30), 3, "'t'", "exists")
    assert list(too_late.directory.glob("+new-*")) == []


def test_pub_can_be_stopped_while_a_topic_comes_and_goes(too_late):
    pub = too_late.start("pub", "t")
    wait_until(lambda: list(too_late.directory.glob("+new-*")))
    time.sleep(0.1)
    pub.terminate()
    _, errors = pub.communicate(timeout=3)
    assert (pub.returncode, errors) == (143, "leat: stopped by SIGTERM; nothing was published\n")
