"""If these tests failed, `leat sub TOPIC --group NAME` in several terminals would lose lines, or print one
twice, when a terminal is killed, stopped, or has a closed or full output."""
import fcntl
import os
import random
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections import Counter

import pytest

from test_cli import wait_until
from test_group_command import drain, group_info, make
from test_pub_sub import Reader, attached, send


def numbers(count, first=0):
    return [str(number) for number in range(first, first + count)]


def lines_of(count, first=0):
    return "".join(f"{number}\n" for number in numbers(count, first))


class Terminal:
    """One `leat sub --group` that writes into a file, standing for a terminal."""

    def __init__(self, leat, place, *options, topic="t", group="g"):
        self.place = place
        with open(place, "w", encoding="utf-8") as out:
            self.process = leat.start("sub", topic, "--group", group, *options, stdout=out)

    def text(self):
        return self.place.read_text(encoding="utf-8")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def lines(self):
        """The complete lines; a kill may have cut the last one."""
        return self.text().split("\n")[:-1]


def is_full(process):
    """Whether the pipe that it writes to, which nobody reads, may be full: a write that does not fit into what is left of a
    page begins another one, so of its 64 KiB only half need be taken."""
    waiting = struct.unpack("i", fcntl.ioctl(process.stdout, termios.FIONREAD, b"    "))[0]
    return waiting > 32_000


def whole_numbers(output):
    """The numbers in complete lines; the last line may be cut."""
    text = output if isinstance(output, str) else output.decode()
    return [int(line) for line in text.split("\n")[:-1]]


def is_idle(leat, topic="t", group="g"):
    facts = group_info(leat, topic, group)
    return facts["lag"] == 0 and facts["in_flight"] == 0


def settled(leat):
    """Whether the group has stopped changing."""
    before = group_info(leat)
    time.sleep(0.2)
    return group_info(leat) == before


# --- Sharing --------------------------------------------------------------------------------------

def test_one_line_goes_to_one_terminal(leat, tmp_path):
    make(leat)
    terminals = [Terminal(leat, tmp_path / f"{i}") for i in range(3)]
    wait_until(lambda: group_info(leat)["members"] == 3)
    pub = leat.start("pub", "t")
    for i in range(20):
        send(pub, f"{i}\n")
        wait_until(lambda: sum(len(one.lines()) for one in terminals) == i + 1)
    assert sorted(line for one in terminals for line in one.lines()) == sorted(numbers(20))
    wait_until(lambda: is_idle(leat))
    assert group_info(leat)["redelivered"] == 0


def test_many_lines_are_spread_over_all_terminals(leat):
    make(leat)
    subs = [leat.start("sub", "t", "--group", "g", text=False) for _ in range(4)]
    wait_until(lambda: group_info(leat)["members"] == 4)
    # More than fits into all pipes and batches: members take lines until no pipe has room.
    leat("pub", "t", "--generate", "1000", "--count", "2000", check=True)
    wait_until(lambda: all(is_full(sub) for sub in subs))
    everything = []
    for sub in subs:
        sub.terminate()
        output, _ = sub.communicate(timeout=20)
        everything += whole_numbers(output)
    rest = whole_numbers(drain(leat))
    assert sorted(everything + rest) == list(range(2000))


def test_terminal_that_stands_still_leaves_the_lines_to_the_others(leat, tmp_path):
    make(leat)
    stuck = leat.start("sub", "t", "--group", "g", text=False)
    wait_until(lambda: group_info(leat)["members"] == 1)
    leat("pub", "t", "--generate", "1000", "--count", "3000", check=True)
    wait_until(lambda: is_full(stuck))
    terminal = Terminal(leat, tmp_path / "other")
    wait_until(lambda: group_info(leat)["lag"] == 0)
    stuck.terminate()  # The lines that it could not write go to the other one.
    output, errors = stuck.communicate(timeout=20)
    assert stuck.returncode == 0 and errors == b""
    wait_until(lambda: is_idle(leat))
    written = whole_numbers(output)
    assert 0 < len(written) < 300  # What fits into the pipe, and the lines it was just writing.
    assert sorted(written + whole_numbers(terminal.text())) == list(range(3000))


def test_equal_keys_go_to_one_terminal_at_a_time_in_order(leat, tmp_path):
    make(leat, "--by-key")
    out = tmp_path / "out"
    terminals = []
    with open(out, "a", encoding="utf-8") as shared:  # Lines are appended in the order of writing.
        for _ in range(3):
            terminals.append(leat.start("sub", "t", "--group", "g", "--format", "%k %s\\n",
                                        stdout=shared))
    wait_until(lambda: group_info(leat)["members"] == 3)
    leat("pub", "t", "--key-separator", ":", check=True,
         input="".join(f"key{i % 7}:{i}\n" for i in range(3000)))
    wait_until(lambda: is_idle(leat))
    last = {}
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3000
    for line in lines:
        key, number = line.split()
        assert int(number) > last.get(key, -1)
        last[key] = int(number)


# --- Beginning ------------------------------------------------------------------------------------

def test_missing_topic_is_waited_for_and_nothing_of_it_is_missed(leat, tmp_path):
    terminals = [Terminal(leat, tmp_path / f"{i}") for i in range(3)]
    time.sleep(0.2)
    assert all(one.process.poll() is None for one in terminals)
    leat("pub", "t", input=lines_of(50), check=True)
    wait_until(lambda: sum(len(one.lines()) for one in terminals) >= 50)
    assert sorted(line for one in terminals for line in one.lines()) == sorted(numbers(50))


def test_exit_waits_for_what_others_hold(leat, tmp_path):
    make(leat)
    holder = leat.start("sub", "t", "--group", "g", text=False)
    wait_until(lambda: group_info(leat)["members"] == 1)
    leat("pub", "t", "--generate", "1000", "--count", "1000", check=True)
    wait_until(lambda: is_full(holder))
    wait_until(lambda: settled(leat) and group_info(leat)["in_flight"] > 0)
    other = Terminal(leat, tmp_path / "other", "--exit")
    wait_until(lambda: group_info(leat)["lag"] == 0)
    time.sleep(0.1)
    assert other.process.poll() is None  # It waits: if the holder dies, it must take its lines.
    holder.kill()
    assert other.process.wait(20) == 0
    output, _ = holder.communicate(timeout=20)
    assert set(whole_numbers(output) + whole_numbers(other.text())) == set(range(1000))


# --- Ends -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_member_cleanly(leat, end):
    make(leat)
    sub = leat.start("sub", "t", "--group", "g")
    missing = leat.start("sub", "missing", "--group", "g")
    wait_until(lambda: group_info(leat)["members"] == 1)
    waiting = "leat: waiting for topic 'missing', which does not exist yet\n"
    for process, said in ((sub, ""), (missing, waiting)):
        wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 2)
        process.send_signal(end)
        assert process.wait(20) == 0 and process.stderr.read() == said
    assert group_info(leat)["members"] == 0


def test_closed_output_requeues_what_was_not_written(leat):
    make(leat)
    sub = leat.start("sub", "t", "--group", "g", text=False)
    wait_until(lambda: group_info(leat)["members"] == 1)
    leat("pub", "t", input="read\n", check=True)
    assert sub.stdout.readline() == b"read\n"
    wait_until(lambda: is_idle(leat))
    sub.stdout.close()
    leat("pub", "t", input=lines_of(10), check=True)
    assert sub.wait(20) == 0
    assert sub.stderr.read() == b""
    assert drain(leat).split() == numbers(10)


def test_stopped_while_nobody_reads_it_keeps_what_was_written(leat):
    """A line that is completely in the pipe counts as written; a cut one goes to another member."""
    make(leat)
    sub = leat.start("sub", "t", "--group", "g", text=False)
    wait_until(lambda: group_info(leat)["members"] == 1)
    leat("pub", "t", "--generate", "1000", "--count", "500", check=True)
    read = b""
    while read.count(b"\n") < 100:
        read += os.read(sub.stdout.fileno(), 1000)
    wait_until(lambda: is_full(sub))
    sub.terminate()
    output, _ = sub.communicate(timeout=20)
    assert sub.returncode == 0
    assert whole_numbers(read + output) + whole_numbers(drain(leat)) == list(range(500))


def test_output_that_is_full_is_an_error_and_loses_nothing(leat):
    make(leat)
    leat("pub", "t", input=lines_of(10), check=True)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([leat.executable, "sub", "t", "--group", "g"], env=leat.environment,
                              stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 6 and "No space left" in done.stderr
    assert drain(leat).split() == numbers(10)


def test_at_most_once_writes_nothing_twice(leat, tmp_path):
    make(leat, "--at-most-once")
    terminals = [Terminal(leat, tmp_path / f"{i}") for i in range(3)]
    wait_until(lambda: group_info(leat)["members"] == 3)
    pub = leat.start("pub", "t", "--generate", "8", "--count", "20000")
    time.sleep(0.05)
    terminals[0].kill()
    assert pub.wait(60) == 0
    wait_until(lambda: is_idle(leat))
    for one in terminals[1:]:
        one.process.terminate()  # It ends only after writing the lines that it took.
        assert one.process.wait(20) == 0
    counts = Counter(line for one in terminals for line in one.lines())
    assert set(counts.values()) == {1}
    assert {int(line) for line in counts} <= set(range(20000))
    assert group_info(leat)["redelivered"] == 0


def test_lines_that_fail_too_often_are_put_aside(leat):
    make(leat, "--max-deliveries", "2")
    leat("pub", "t", input="poison\n", check=True)
    for _ in range(2):
        with open("/dev/full", "w", encoding="utf-8") as full:
            subprocess.run([leat.executable, "sub", "t", "--group", "g"], env=leat.environment,
                           stdout=full, stderr=subprocess.DEVNULL, check=False, timeout=60)
    leat("pub", "t", input="good\n", check=True)
    assert drain(leat) == "good\n"
    facts = group_info(leat)
    assert facts["dead_letters"] == 1 and facts["dead_letter_topic"] == "t.g.dead"
    assert re.search(r"^dead letters +1, in topic t\.g\.dead$",
                     leat("group", "info", "t", "g", check=True).stdout, re.MULTILINE)
    dead = leat("sub", "t.g.dead", "--from", "beginning", "--exit", "--format", "%s %h\\n",
                check=True).stdout
    assert dead.startswith("poison ") and dead.count("\n") == 1
    for header in ("leat-topic=t", "leat-group=g", "leat-offset=0", "leat-deliveries=2"):
        assert header in dead


def test_member_that_holds_lines_longer_than_the_lease_loses_them(leat):
    make(leat, "--lease", "200ms")
    slow = leat.start("sub", "t", "--group", "g", text=False)
    wait_until(lambda: group_info(leat)["members"] == 1)
    leat("pub", "t", "--generate", "1000", "--count", "500", check=True)
    wait_until(lambda: is_full(slow))
    taken = whole_numbers(drain(leat))
    # The output is read again: the rest is written, and a message says that it was too late.
    output = b""
    while not select.select([slow.stderr], [], [], 0)[0]:
        assert select.select([slow.stdout, slow.stderr], [], [], 20)[0]
        if select.select([slow.stdout], [], [], 0)[0]:
            output += os.read(slow.stdout.fileno(), 1 << 16)
    assert b"longer than --lease" in slow.stderr.readline()
    assert set(taken + whole_numbers(output)) == set(range(500))
    slow.terminate()
    assert slow.wait(20) == 0


# --- Death ----------------------------------------------------------------------------------------

def test_lines_of_a_killed_member_go_to_another(leat):
    make(leat)
    first = leat.start("sub", "t", "--group", "g", text=False)
    wait_until(lambda: group_info(leat)["members"] == 1)
    leat("pub", "t", "--generate", "1000", "--count", "500", check=True)
    wait_until(lambda: is_full(first))
    first.kill()
    output, _ = first.communicate(timeout=20)
    assert set(whole_numbers(output) + whole_numbers(drain(leat))) == set(range(500))


def test_five_terminals_share_the_lines_and_survive_any_kill(leat, tmp_path):
    """Five terminals of one group, one publisher; terminals are killed at random moments and restarted.
    Every line is written by one of them, and a subscriber outside the group sees every line once."""
    count = 100_000
    seed = int(os.environ.get("LEAT_SEED") or random.randrange(1 << 32))
    print(f"LEAT_SEED={seed}")
    rng = random.Random(seed)
    leat("topic", "create", "orders", "--capacity", "1MiB", check=True)
    leat("group", "create", "orders", "workers", check=True)
    beside = tmp_path / "beside"
    with open(beside, "w", encoding="utf-8") as out:
        subscriber = leat.start("sub", "orders", "--count", count, stdout=out)
    attached(leat, "orders")
    opened = []

    def open_terminal():
        place = tmp_path / f"terminal-{len(opened)}"
        opened.append(Terminal(leat, place, topic="orders", group="workers"))
        return opened[-1]

    terminals = [open_terminal() for _ in range(5)]
    wait_until(lambda: group_info(leat, "orders", "workers")["members"] == 5)
    pub = leat.start("pub", "orders")
    kills = 0
    for chunk in range(0, count, 1000):
        send(pub, lines_of(1000, chunk))
        time.sleep(rng.random() * 0.01)
        if rng.random() < 0.3:
            victim = rng.randrange(5)
            terminals[victim].kill()
            terminals[victim] = open_terminal()
            kills += 1
    pub.stdin.close()
    assert pub.wait(60) == 0 and kills > 5
    for victim in rng.sample(range(5), 3):  # Three are killed and not restarted.
        terminals[victim].kill()
    wait_until(lambda: is_idle(leat, "orders", "workers"), 60)
    assert subscriber.wait(60) == 0
    assert beside.read_text(encoding="utf-8") == lines_of(count)

    written = Counter(line for one in opened for line in one.lines())
    missing = [number for number in numbers(count) if number not in written]
    assert missing == []
    # A killed terminal may have written up to one batch that it could not acknowledge.
    again = sum(written.values()) - count
    assert again <= 64 * (kills + 3)
    assert len([one for one in opened if one.lines()]) >= 5  # The lines were shared.
