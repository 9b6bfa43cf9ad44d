"""The programs of examples/patterns, which docs/guide/patterns.md describes. If these tests failed, users who copy them would
lose records, count them twice, or have programs that hang or do not end."""
import json
import os
import random
import signal
import socket
import subprocess
import time

import pytest

from conftest import ROOT
from test_cli import info, wait_until
from test_group_command import group_info
from test_pub_sub import Reader, attached, read_all


@pytest.fixture
def start(leat):
    """`start("resume", arguments…)` starts an example; killed at the end of the test."""
    def begin(name, *arguments, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        process = subprocess.Popen([ROOT / "build" / f"example_{name}", *map(str, arguments)],
                                   env=leat.environment, start_new_session=True, stdin=subprocess.DEVNULL, **options)
        leat.started.append(process)
        return process
    return begin


def members(leat, topic, group):
    """How many members the group has; 0 if there is no such group yet."""
    done = leat("group", "info", topic, group, "--json")
    return json.loads(done.stdout)["members"] if done.returncode == 0 else 0


@pytest.mark.parametrize("name, arguments", [
    ("request_reply", ["one", "two", "three"]), ("request_reply", ["ask"]), ("work_queue", ["one", "two", "three"]),
    ("work_queue", ["add"]), ("clean_stop", ["--help"]), ("resume", ["one"]), ("event_loop", ["one", "two", "three"])])
def test_wrong_usage_is_explained(start, name, arguments):
    process = start(name, *arguments)
    assert process.communicate(timeout=20)[1].startswith(f"usage: {name}") and process.returncode == 2


# --- Request and reply ----------------------------------------------------------------------------

def test_every_request_is_answered_although_servers_are_killed(leat, start):
    servers = [start("request_reply", "serve", stderr=subprocess.DEVNULL) for _ in range(3)]
    wait_until(lambda: members(leat, "requests", "servers") == 3)
    client = start("request_reply", "ask", *(f"question {i}" for i in range(500)))
    replies = Reader(client.stdout)
    for server, count in zip(servers, (50, 100)):
        replies.until(lambda text, count=count: text.count("\n") >= count)
        server.kill()
    text = replies.until(lambda text: text.count("\n") == 500)
    assert text.splitlines() == [f"QUESTION {i}" for i in range(500)]
    assert (client.wait(20), client.stderr.read()) == (0, "")
    wait_until(lambda: [one["name"] for one in json.loads(leat("ls", "--json").stdout)] == ["requests"])


def test_client_that_has_gone_does_not_hold_up_the_server(leat, start):
    server = start("request_reply", "serve")
    wait_until(lambda: members(leat, "requests", "servers") == 1)
    leat("pub", "requests", "-H", "reply-to=replies.gone", "-H", "id=1", "x", check=True)
    leat("pub", "requests", "-H", "reply-to=requests", "y", check=True)  # Not a client's topic.
    leat("topic", "create", "replies.full", "--capacity", "64KiB", "--retain", "all", check=True)
    leat("pub", "replies.full", "--generate", "1000", "--count", "1000")
    leat("pub", "requests", "-H", "reply-to=replies.full", "-H", "id=1", "z", check=True)
    client = start("request_reply", "ask", "still there?")
    assert client.communicate(timeout=20) == ("STILL THERE?\n", "")
    server.kill()
    assert server.communicate(timeout=20)[1].count("cannot reply: ") == 3


# --- Work queue -----------------------------------------------------------------------------------

def test_job_of_a_killed_worker_goes_to_another(leat, start, tmp_path):
    slow, quick = tmp_path / "slow", tmp_path / "quick"
    os.mkfifo(slow)  # The worker that opens it waits until somebody writes.
    quick.write_text("1\n2\n", encoding="utf-8")
    assert start("work_queue", "add", slow, quick).wait(20) == 0
    workers = [start("work_queue", "work")]
    wait_until(lambda: group_info(leat, "jobs", "workers")["in_flight"] == 1)
    workers.append(start("work_queue", "work"))
    assert Reader(workers[1].stdout).until("\n") == f"{quick}: 2 lines\n"  # The first one holds no other job.
    workers[0].kill()
    workers[0].wait()
    with open(slow, "w", encoding="utf-8") as pipe:  # Opens when the other worker reads.
        pipe.write("1\n2\n3\n")
    assert Reader(workers[1].stdout).until("\n") == f"{slow}: 3 lines\n"
    wait_until(lambda: group_info(leat, "jobs", "workers")["in_flight"] == 0)
    assert group_info(leat, "jobs", "workers")["lag"] == 0


def test_job_that_fails_is_tried_again_and_then_put_aside(leat, start, tmp_path):
    late, never = tmp_path / "late", tmp_path / "never"
    worker = start("work_queue", "work")
    assert start("work_queue", "add", late, never).wait(20) == 0
    errors = Reader(worker.stderr)
    errors.until(f"{late} failed, attempt 1\n")
    late.write_text("1\n", encoding="utf-8")
    errors.until(f"{never} failed, attempt 3\n")
    wait_until(lambda: group_info(leat, "jobs", "workers")["dead_letters"] == 1)
    assert Reader(worker.stdout).until("\n") == f"{late}: 1 lines\n"
    assert read_all(leat, "jobs.workers.dead") == f"{never}\n"


# --- A clean stop ---------------------------------------------------------------------------------

def test_what_clean_stop_forwards_is_there_for_the_reader_of_its_usage(leat, start):
    """The command at the top of the program: the reader begins after the record was forwarded."""
    usage = (ROOT / "examples" / "patterns" / "clean_stop.cpp").read_text().split("//     ")[1].splitlines()[0]
    forwarder = start("clean_stop")
    leat("pub", "incoming", "hello", check=True)
    wait_until(lambda: (there := leat("topic", "info", "outgoing", "--json")).returncode == 0
               and json.loads(there.stdout)["partitions"][0]["end"] == 1)
    reader = usage[usage.index("leat sub ") + len("leat "):usage.index(";")].split()
    assert leat(*reader, timeout=20).stdout == "hello\n"
    forwarder.terminate()
    assert forwarder.wait(20) == 0


def test_stops_lose_nothing_and_forward_nothing_twice(leat, start):
    leat("topic", "create", "outgoing", "--retain", "all", "--capacity", "4MiB", check=True)
    leat("topic", "create", "incoming", "--retain", "all", "--capacity", "4MiB", check=True)
    count = 40_000
    leat("pub", "incoming", "--generate", "8", "--count", count, check=True)
    ends = []
    while len(ends) < 50 and (not ends or ends[-1] < count):
        process = start("clean_stop")
        wait_until(lambda: info(leat, "outgoing")["partitions"][0]["end"] > (ends or [0])[-1])
        time.sleep(random.uniform(0, 0.003))
        process.send_signal(random.choice([signal.SIGTERM, signal.SIGINT]))
        assert process.wait(20) == 0 and process.stderr.read() == ""
        ends.append(info(leat, "outgoing")["partitions"][0]["end"])
    assert sorted(map(int, read_all(leat, "outgoing").split())) == list(range(ends[-1]))
    facts = group_info(leat, "incoming", "forwarder")
    assert facts["lag"] + facts["in_flight"] == count - ends[-1]


def test_stop_while_the_topic_behind_is_full(leat, start):
    leat("topic", "create", "outgoing", "--capacity", "64KiB", check=True)
    sub = leat.start("sub", "outgoing")
    attached(leat, "outgoing")
    sub.send_signal(signal.SIGSTOP)
    leat("pub", "incoming", "--generate", "1000", "--count", "100", check=True)
    leat("group", "create", "incoming", "forwarder", "--from", "beginning", check=True)
    process = start("clean_stop")
    wait_until(lambda: any(one["blocking"] for one in info(leat, "outgoing")["participants"]))
    process.terminate()
    assert process.wait(20) == 0
    sub.send_signal(signal.SIGCONT)
    process = start("clean_stop")
    output = Reader(sub.stdout).until(lambda text: text.count("\n") == 100)
    assert sorted(map(int, output.split())) == list(range(100))
    process.terminate()
    assert process.wait(20) == 0


# --- Resuming -------------------------------------------------------------------------------------

def test_each_number_counts_once_although_the_program_is_killed(leat, start, tmp_path):
    count = 100_000
    leat("topic", "create", "numbers", "--retain", "all", "--capacity", "16MiB", check=True)
    leat("pub", "numbers", input="".join(f"{i}\n" for i in range(1, count + 1)), check=True)
    state = tmp_path / "state"
    offsets = [0]
    for _ in range(8):
        process = start("resume", "numbers", state)
        # It has gone on from where it was.
        wait_until(lambda: process.poll() is not None or (
            state.exists() and int(state.read_text().split()[1]) > offsets[-1]))
        process.kill()
        process.wait()
        offsets.append(int(state.read_text().split()[1]))
    assert offsets == sorted(offsets) and offsets[1] < count
    done = start("resume", "numbers", state)
    assert done.communicate(timeout=60) == (f"{count * (count + 1) // 2} in {count} records\n", "")
    leat("pub", "numbers", "1", "no number", "1", check=True)
    done = start("resume", "numbers", state)
    assert done.communicate(timeout=60) == (f"{count * (count + 1) // 2 + 2} in {count + 2} records\n",
                                            f"record {count + 1} is no number and does not count\n")


def test_damaged_state_is_an_error(leat, start, tmp_path):
    leat("pub", "numbers", "1", check=True)
    (tmp_path / "state").write_text("7 apples\n")
    process = start("resume", "numbers", tmp_path / "state")
    assert process.communicate(timeout=20) == (
        "", f"{tmp_path / 'state'} is no state of this program: remove it to start over\n")
    assert process.returncode == 1 and (tmp_path / "state").read_text() == "7 apples\n"


def test_topic_that_was_made_anew_is_noticed(leat, start, tmp_path):
    state = tmp_path / "state"
    leat("pub", "numbers", "1", "2", "3", check=True)
    assert start("resume", "numbers", state).communicate(timeout=20) == ("6 in 3 records\n", "")
    assert state.read_text() == f"{info(leat, 'numbers')['id']} 3 3 6\n"
    leat("rm", "numbers", check=True)
    leat("pub", "numbers", "10", "20", "30", "40", check=True)
    assert start("resume", "numbers", state).communicate(timeout=20) == (
        "100 in 4 records\n", "numbers was made anew: starting over\n")


def test_records_that_are_gone_are_reported(leat, start, tmp_path):
    leat("topic", "create", "numbers", "--capacity", "64KiB", check=True)
    leat("pub", "numbers", "1", check=True)
    assert start("resume", "numbers", tmp_path / "state").wait(20) == 0
    leat("pub", "numbers", "--generate", "100", "--count", "5000", check=True)
    begin = info(leat, "numbers")["partitions"][0]["start"]
    output, errors = start("resume", "numbers", tmp_path / "state").communicate(timeout=20)
    assert errors == f"{begin - 1} records from offset 1 on are not there: overwritten\n"
    assert output == f"{1 + sum(range(begin - 1, 5000))} in {5002 - begin} records\n"


def test_state_that_cannot_be_saved_is_an_error(leat, start, tmp_path):
    leat("pub", "numbers", "1", check=True)
    process = start("resume", "numbers", tmp_path / "missing" / "state")
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (1, "") and "missing/state" in errors


# --- An event loop --------------------------------------------------------------------------------

def test_event_loop_serves_topics_and_a_socket_while_one_topic_is_full(leat, start, tmp_path):
    leat("topic", "create", "notes", "--capacity", "64KiB", check=True)
    written = tmp_path / "written"
    with open(written, "wb") as output:
        sub = leat.start("sub", "notes", stdout=output)
    attached(leat, "notes")
    sub.send_signal(signal.SIGSTOP)
    path = tmp_path / "notes"
    loop = start("event_loop", path)
    wait_until(path.exists)
    shown = Reader(loop.stdout)
    leat("pub", "orders", "tea", check=True)
    leat("pub", "trades", "coffee", check=True)
    shown.until("orders: tea\n")
    shown.until("trades: coffee\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notes:
        notes.connect(str(path))
        notes.setblocking(False)
        sent = 0
        while sent < 1000:
            try:
                notes.send(f"{sent:01000}".encode())
                sent += 1
            except BlockingIOError:
                if any(one["blocking"] for one in info(leat, "notes")["participants"]):
                    break  # Both the topic and the socket are full.
        assert 40 < sent < 200
        leat("pub", "orders", "more tea", check=True)
        shown.until("orders: more tea\n")
        sub.send_signal(signal.SIGCONT)
        notes.setblocking(True)
        notes.settimeout(20)
        for i in range(sent, sent + 100):
            notes.send(f"{i:01000}".encode())
    wait_until(lambda: written.read_bytes().count(b"\n") == sent + 100)
    assert [int(line) for line in written.read_bytes().split()] == list(range(sent + 100))
    loop.terminate()
    assert loop.wait(20) == 0 and loop.stderr.read() == "" and not path.exists()
