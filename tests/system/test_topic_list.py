"""`leat topic list`, `leat ls` and `leat top`: what they show once, and what they show every second."""
import json
import re
import signal
import subprocess
import time

import pytest

from terminal import Terminal
from test_cli import NOBODY, info, one_line, run_as, wait_until
from test_pub_sub import attached, send

HEADS = ["NAME", "POLICY", "DURABLE", "CAPACITY", "USED", "DISK", "PARTS", "RECORDS", "RATE", "AGE", "GROUPS",
         "ATTACHED"]


def listed(leat, *options):
    return {one["name"]: one
            for one in json.loads(leat("topic", "list", "--json", *options, check=True).stdout)}


def publish_all_the_time(leat, topic="t"):
    """A publisher that goes on until the end of the test."""
    pub = leat.start("pub", topic, "--generate", "100", "--count", 1 << 60)
    wait_until(lambda: info(leat, topic)["partitions"][0]["end"] > 0)
    return pub


def count_of(leat, topic="t"):
    return info(leat, topic)["partitions"][0]["end"]


# --- Once -----------------------------------------------------------------------------------------

def test_list_shows_all_topics(leat):
    done = leat("topic", "list", check=True)
    assert done.stdout == "" and done.stderr == f"leat: no topics in {leat.directory}\n"
    for name in ("beta", "alpha"):
        leat("topic", "create", name, check=True)
    leat("pub", "alpha", input="1\n2\n3\n", check=True)
    leat("group", "create", "alpha", "workers", check=True)
    lines = leat("topic", "list", check=True).stdout.splitlines()
    assert lines[0].split() == HEADS
    assert re.fullmatch(r"alpha +block +- +8 MiB +96 bytes +- +1 +3 +0/s +\d+s +1 +0", lines[1])
    assert re.fullmatch(r"beta +block +- +8 MiB +0 bytes +- +1 +0 +0/s +\d+s +0 +0", lines[2])


def test_durability_and_the_room_on_disk_are_shown(leat):
    leat("topic", "create", "kept", "--durable", "fsync", "--capacity", "64KiB", "--file-size", "64KiB", check=True)
    leat("topic", "create", "more", "--durable", "interval:20ms", "--capacity", "64KiB", check=True)
    leat("topic", "create", "none", check=True)
    leat("pub", "kept", "--generate", "1000", "--count", "200", check=True)
    disk = info(leat, "kept")["durable"]["disk_bytes"]
    assert disk >= 200_000
    header, kept, more, none = leat("topic", "list", check=True).stdout.splitlines()
    assert header.split() == HEADS and max(map(len, (header, kept, more, none))) <= 100
    size = f"{disk / 1024:.1f}".removesuffix(".0")
    assert re.match(rf"kept +block +fsync +64 KiB +[\d.]+ (KiB|bytes) +{size} KiB +1 +\d+ ", kept)
    assert re.match(r"more +block +interval +64 KiB +0 bytes +[\d.]+ (KiB|bytes) +1 +0 ", more)
    assert re.match(r"none +block +- +8 MiB +0 bytes +- +1 +0 ", none)


@pytest.mark.parametrize("command", [["ls"], ["topic", "ls"]], ids=" ".join)
def test_ls_is_the_same(leat, command):
    leat("topic", "create", "t", check=True)
    assert leat(*command, check=True).stdout == leat("topic", "list", check=True).stdout
    assert (json.loads(leat(*command, "--json", check=True).stdout) ==
            json.loads(leat("topic", "list", "--json", check=True).stdout))


def test_ls_of_groups_is_the_same(leat):
    leat("topic", "create", "t", check=True)
    leat("group", "create", "t", "g", check=True)
    assert (leat("group", "ls", "t", check=True).stdout ==
            leat("group", "list", "t", check=True).stdout != "")


def test_json_is_that_of_info_and_the_rate(leat):
    for name in ("beta", "alpha"):
        leat("topic", "create", name, check=True)
    text = leat("topic", "list", "--json", check=True).stdout
    expected = [{**info(leat, name), "records_per_second": 0} for name in ("alpha", "beta")]
    assert json.loads(text) == expected


def test_capacity_is_that_of_all_partitions(leat):
    leat("topic", "create", "t", "--capacity", "1MiB", "--partitions", "4", check=True)
    facts = info(leat, "t")
    assert facts["capacity_bytes"] == 1 << 20 and facts["total_capacity_bytes"] == 4 << 20
    line = leat("topic", "list", check=True).stdout.splitlines()[1]
    assert re.match(r"t +block +- +4 MiB ", line)


def test_capacity_of_a_topic_that_grew_in_one_partition(leat):
    leat("topic", "create", "t", "--policy", "grow", "--capacity", "64KiB", "--partitions", "2",
         "--max-capacity", "1MiB", check=True)
    sub = leat.start("sub", "t", "--from", "beginning")
    attached(leat, "t")
    sub.send_signal(signal.SIGSTOP)
    leat("pub", "t", "--partition", "1", "--generate", "1000", "--count", "300", check=True)
    facts = info(leat, "t")
    each = [partition["capacity_bytes"] for partition in facts["partitions"]]
    assert each[0] == 64 << 10 and each[1] > 300_000
    assert facts["total_capacity_bytes"] == sum(each) and facts["capacity_bytes"] == max(each)


def test_used_bytes_follow_the_records(leat):
    leat("topic", "create", "t", "--capacity", "64KiB", "--partitions", "2", check=True)
    leat("pub", "t", "--partition", "1", "--generate", "100", "--count", "10", check=True)
    facts = info(leat, "t")
    assert [one["used_bytes"] for one in facts["partitions"]] == [0, 10 * 128]
    assert facts["used_bytes"] == 10 * 128
    # Nobody reads, so that room is reused: never more than there is.
    leat("pub", "t", "--partition", "1", "--generate", "100", "--count", "10000", check=True)
    used = info(leat, "t")["used_bytes"]
    assert 48 << 10 < used <= 64 << 10


def test_age_is_the_time_since_the_creation(leat):
    before = int(time.time() * 1000)
    leat("topic", "create", "t", check=True)
    after = time.time() * 1000
    created = info(leat, "t")["created_ms"]
    assert before - 20 <= created <= after  # The kernel's clock for files ticks every 4 to 10 ms.
    leat("pub", "t", input="x\n", check=True)
    leat("group", "create", "t", "g", check=True)
    assert info(leat, "t")["created_ms"] == created
    wait_until(lambda: int(re.search(r" (\d+)s ", leat("ls", check=True).stdout).group(1)) >= 2)
    assert re.search(r"^created +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, [2-9]s ago$",
                     leat("topic", "info", "t", check=True).stdout, re.M)


def test_rate_is_what_is_published_in_a_second(leat):
    leat("topic", "create", "t", check=True)
    publish_all_the_time(leat)
    first, begin = count_of(leat), time.monotonic()
    rates = [listed(leat)["t"]["records_per_second"] for _ in range(10)]
    mean = (count_of(leat) - first) / (time.monotonic() - begin)
    assert mean / 4 < sorted(rates)[5] < mean * 4
    assert re.search(r"^t .* [\d,]+/s ", leat("ls", check=True).stdout, re.M)


def test_groups_are_shown(leat):
    leat("topic", "create", "t", check=True)
    leat("group", "create", "t", "b", check=True)
    leat("group", "create", "t", "a", "--from", "beginning", check=True)
    leat("pub", "t", input="1\n2\n", check=True)
    member = leat.start("sub", "t", "--group", "b")
    wait_until(lambda: info(leat, "t")["groups"] == [{"name": "a", "lag": 2, "members": 0},
                                                     {"name": "b", "lag": 0, "members": 1}])
    text = leat("topic", "info", "t", check=True).stdout
    assert "\ngroups    a (lag 2, 0 members), b (lag 0, 1 member)\n" in text
    # Where a member is, is its group's matter.
    assert info(leat, "t")["participants"] == [
        {"pid": member.pid, "role": "member", "offset": None, "lag": None, "blocking": None}]
    assert re.search(rf"^ *{member.pid}  member +- +- +-$", text, re.M)


def test_topic_of_somebody_else_is_shown_as_permission(leat, as_root):
    leat.directory.chmod(0o755)
    leat("topic", "create", "secret", check=True)
    leat("topic", "create", "shared", "--mode", "0666", check=True)
    done = run_as(leat, NOBODY, "topic", "list", directory=leat.directory)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].split() == HEADS
    assert lines[1].split() == ["secret", "permission"] and lines[2].startswith("shared  block ")
    done = run_as(leat, NOBODY, "ls", "--json", directory=leat.directory)
    assert done.returncode == 0
    assert json.loads(done.stdout)[0] == {"name": "secret", "error": "permission"}
    done = run_as(leat, NOBODY, "top", "-n", "1", directory=leat.directory)
    assert done.returncode == 0 and re.search(r"^secret +permission$", done.stdout, re.M)


@pytest.mark.parametrize("mode", [0o744, 0o711, 0o700], ids=oct)
def test_directory_that_may_not_be_listed_is_named(leat, as_root, mode):
    leat("topic", "create", "t", "--mode", "0666", check=True)
    leat.directory.chmod(mode)
    for command in (["topic", "list"], ["top", "-n", "1"]):
        one_line(run_as(leat, NOBODY, *command, directory=leat.directory), 4, f"{leat.directory}:",
                 "Permission denied")


# --- Every second ---------------------------------------------------------------------------------

def test_watch_prints_a_block_a_second_where_nobody_looks(leat):
    leat("topic", "create", "t", check=True)
    watch = leat.start("topic", "list", "--watch")
    for records in ("0", "1"):
        assert watch.stdout.readline().split() == HEADS
        row = watch.stdout.readline().split()
        assert row[0] == "t" and row[9] == records
        leat("pub", "t", input="x\n", check=True)
        assert watch.stdout.readline() == "\n"  # Between the blocks.
    watch.send_signal(signal.SIGINT)
    assert watch.wait(20) == 0 and watch.stderr.read() == ""


def test_watch_as_json_prints_a_line_a_second(leat):
    leat("topic", "create", "t", check=True)
    publish_all_the_time(leat)
    watch = leat.start("ls", "-w", "--json")
    for _ in range(2):
        one, = json.loads(watch.stdout.readline())
        assert one["name"] == "t" and one["records_per_second"] > 0
    watch.terminate()
    assert watch.wait(20) == 0


def test_watch_sees_topics_come_and_go(leat):
    watch = leat.start("ls", "--watch", "--json")
    names = lambda: [one["name"] for one in json.loads(watch.stdout.readline())]
    assert names() == []
    leat("topic", "create", "t", "--delete-when-unused", check=True)
    wait_until(lambda: names() == ["t"])
    sub = leat.start("sub", "t")
    attached(leat, "t")
    sub.terminate()
    sub.wait(20)
    wait_until(lambda: names() == [])  # It is not kept by whoever looks.


def test_watch_draws_in_place_on_a_terminal(leat):
    for i in range(30):
        leat("topic", "create", f"topic-with-a-long-name-{i:02}", check=True)
    with Terminal(leat, "ls", "--watch", columns=60, rows=10) as terminal:
        terminal.until(lambda text: text.count("\x1b[H") >= 2)
        first, second = terminal.text.split("\x1b[H")[1:3]
        assert "\x1b[J" in first
        lines = first.replace("\x1b[J", "").split("\r\n")
        assert len(lines) == 10 and lines[9] == ""  # No more than fits.
        plain = [re.sub(r"\x1b\[\w*[mK]", "", line) for line in lines]
        assert plain[0].startswith("NAME ") and max(map(len, plain)) == 60
        terminal.write("\x03")
        assert terminal.process.wait(20) == 0


def test_stopped_by_a_reader_that_has_enough(leat):
    leat("topic", "create", "t", check=True)
    watch = leat.start("ls", "--watch")
    watch.stdout.readline()
    watch.stdout.close()
    assert watch.wait(20) == -signal.SIGPIPE
    watch.stdout = None


# --- top ------------------------------------------------------------------------------------------

def test_top_shows_topics_rates_lags_and_members(leat):
    for name in ("quiet", "busy"):
        leat("topic", "create", name, "--capacity", "64KiB", check=True)
    leat("pub", "quiet", input="1\n2\n3\n", check=True)
    leat("group", "create", "quiet", "idle", "--from", "beginning", check=True)
    member = leat.start("sub", "quiet", "--group", "workers", "--member", "anna")
    wait_until(lambda: any(one["members"] for one in info(leat, "quiet")["groups"]))
    reader = leat.start("sub", "busy", stdout=subprocess.DEVNULL)
    publish_all_the_time(leat, "busy")

    text = leat("top", "-n", "1", check=True).stdout
    lines = text.splitlines()
    assert re.fullmatch(rf"2 topics in {leat.directory}, [\d,]+ records/s", lines[0])
    assert lines[2].split() == ["TOPIC", "RATE", "LAG", "IN", "FLIGHT", "USED"]
    # The busiest first.
    assert re.fullmatch(r"busy +[\d,]+/s +[\d.]+ (?:KiB|bytes) of 64 KiB  1 publisher", lines[3])
    assert re.fullmatch(rf"  subscriber {reader.pid} +[\d,]+(?: +blocking)?", lines[4])
    assert re.fullmatch(r"quiet +0/s +96 bytes of 64 KiB  0 publishers", lines[5])
    assert re.fullmatch(r"  group idle +0/s +3 +0 +0 members", lines[6])
    assert re.fullmatch(r"  group workers +0/s +0 +0 +1 member", lines[7])
    assert re.fullmatch(rf"    member {member.pid} \(anna\) +0", lines[8])
    assert len(lines) == 9


def test_top_says_who_blocks(leat):
    leat("topic", "create", "t", "--capacity", "64KiB", check=True)
    sub = leat.start("sub", "t")
    attached(leat, "t")
    sub.send_signal(signal.SIGSTOP)
    leat.start("pub", "t", "--generate", "100", "--count", "5000")
    wait_until(lambda: any(one["blocking"] for one in info(leat, "t")["participants"]))
    assert re.search(rf"^  subscriber {sub.pid} +\d+ +blocking$",
                     leat("top", "-n", "1", check=True).stdout, re.M)


def test_top_shows_what_a_group_takes(leat):
    leat("topic", "create", "t", check=True)
    leat.start("sub", "t", "--group", "g", stdout=subprocess.DEVNULL)
    wait_until(lambda: any(one["members"] for one in info(leat, "t")["groups"]))
    publish_all_the_time(leat)
    text = leat("top", "-n", "2", check=True).stdout
    rates = re.findall(r"^  group g +([\d,.]+)/s", text, re.M)
    assert len(rates) == 2 and all(float(rate.replace(",", "")) > 0 for rate in rates)


def test_top_ends_after_so_many_times_or_when_told_to(leat):
    leat("topic", "create", "t", check=True)
    assert leat("top", "--count", "2", check=True).stdout.count("1 topic in") == 2
    for number in (signal.SIGINT, signal.SIGTERM):
        top = leat.start("top")
        top.stdout.readline()
        top.send_signal(number)
        assert top.wait(20) == 0
    one_line(leat("top", "-n", "0"), 2, "--count", "'0'")
    one_line(leat("top", "extra"), 2, "extra")


@pytest.mark.parametrize("key", ["q", "Q", "\x03"])
def test_top_on_a_terminal_ends_with_q(leat, key):
    leat("topic", "create", "t", check=True)
    with Terminal(leat, "top") as terminal:
        # All of it: Ctrl-C makes the kernel drop what the terminal has not shown yet.
        terminal.until(lambda text: "1 topic in" in text and text.endswith("\x1b[J"))
        assert not terminal.is_echoing()
        terminal.write("x" + key)
        assert terminal.process.wait(20) == 0
        assert terminal.is_echoing()  # As it was.
        assert "x" not in terminal.until("\x1b[J").rpartition("\x1b[J")[2]


def test_top_reads_no_keys_where_there_is_no_terminal(leat):
    """So that it can be left running with its input closed or at its end."""
    top = leat.start("top", "-n", "2")
    send(top, "q")
    top.stdin.close()
    top.stdin = None
    assert top.wait(20) == 0 and top.stdout.read().count("0 topics in") == 2
