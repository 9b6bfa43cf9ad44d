"""If these tests failed, scripts of LightQ's users would not run with `leat lightq`, would print other lines, or would show
passwords to everybody."""
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from broker import ADMIN, PASSWORD, USER, WAIT_SECONDS, free_ports, wait_for
from test_cli import one_line

SECRET = "Beryll-Kolibri-5"
TIME = r"\d{13}"


class Tool:
    """`leat lightq`, with nothing in the environment that a test does not put there."""

    def __init__(self, leat, path):
        self.executable = leat.executable
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("LEAT_")}
        self.environment |= {"LEAT_DIR": str(leat.directory), "LEAT_DATA_DIR": str(path / "data")}
        self.started = []

    def start(self, *words, **variables):
        process = subprocess.Popen([self.executable, "lightq", *map(str, words)], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True,
                                   env={**self.environment, **variables})
        self.started.append(process)
        return process

    def __call__(self, *words, **variables):
        process = self.start(*words, **variables)
        output, errors = process.communicate(timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, output, errors)


@pytest.fixture
def tool(leat, tmp_path):
    assert (leat.executable.parent / "leat-lightq").exists(), "build leat_lightq first"
    made = Tool(leat, tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def uri_of(broker):
    return f"tcp://127.0.0.1:{broker.port}"


def lines_of(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def match_all(lines, *patterns):
    assert len(lines) == len(patterns), lines
    for line, pattern in zip(lines, patterns):
        assert re.fullmatch(pattern, line), f"{line!r} is not {pattern!r}"


# --- LightQ's own forms ---------------------------------------------------------------------------

def test_new_form_prints_lightqs_lines(serve, tool):
    # Breaks: scripts that read these lines find others, or rates that are too high (LightQ cut the seconds).
    broker = serve()
    admin, user = {"LEAT_ADMIN_PASSWORD": broker.admin_password}, {"LEAT_PASSWORD": SECRET}
    assert lines_of(tool("topic", "-t", "t", "-b", uri_of(broker), "-n", 2, **admin, **user)) == [
        "creating topic t_1", "creating topic t_2", "topic t created successfully"]
    consumer = tool.start("consumer", "-t", "t", "-b", uri_of(broker), "-m", 5000, "-n", 2, **user)
    for name in "t_1", "t_2":
        broker.stats_become(name, with_password=SECRET, subscribers_count=1)
    produced = lines_of(tool("producer", "-t", "t", "-b", uri_of(broker), "-m", 5000, "-n", 2, "-s", 64,
                             **user))
    assert produced[0] == "Sending message [5000]"
    topics = sorted(produced[1:])[::5]
    assert [line[:10] for line in topics] == ["Topic[t_1]", "Topic[t_2]"]
    for name in "t_1", "t_2":
        head = rf"Topic\[{name}\], "
        match_all([line for line in produced if name in line],
                  head + rf"Producer: first message sent timestamp \[{TIME}\]",
                  head + rf"Producer: last message sent timestamp \[{TIME}\]",
                  head + r"Total message sent \[5000\] in \[\d+\.\d\d\] sec",
                  head + r"Average messages sent per second \[\d+\.\d\d\]",
                  head + r"Average bandwidth sent per second \[\d+\.\d{4}\] MB")
    output, errors = consumer.communicate(timeout=WAIT_SECONDS)
    assert consumer.returncode == 0 and errors == ""
    received = output.splitlines()
    for part in received[:8], received[8:]:
        match_all(part,
                  rf"First message:  producer start time \[{TIME}\], consumer start time \[{TIME}\]",
                  r"Total message received \[5000\] in \[\d+\.\d\d\]sec",
                  r"Average messages received per second \[\d+\.\d\d\]",
                  r"Total bytes received \[319949\], average bandwidth received per second "
                  r"\[\d+\.\d{4}\]MB",
                  rf"Last Message: consumer endtime \[{TIME}\]",
                  r"Consumer first message latency \[\d+\] ms",
                  r"Consumer last message received -   producer first message sent timestamp \[\d+\]",
                  r"Average latency \[\d+\.\d\d\] nano sec")


def test_consumer_takes_no_more_than_it_was_told(serve, tool):
    # Breaks: what a consumer of a few messages had in its buffers is lost.
    broker = serve()
    broker.create("t_1")
    options = ["-t", "t", "-b", uri_of(broker), "-p", PASSWORD]
    lines_of(tool("producer", *options, "-m", 1000))
    for count in 1, 299, 700:
        received = lines_of(tool("consumer", *options, "-m", count))
        assert f"Total message received [{count}]" in received[1]
    broker.stats_become("t_1", queue_size=0, messages_sent=1000)


def old_lines(count, size, what):
    return (rf"Total Messages:{count}, Time Taken:[\d.e-]+ seconds\.",
            rf"Start Time: {TIME}, End Time:{TIME}", r"\d+ messages per seconds\.",
            rf"{size} bytes {what}", r"\d+\.\d{4} MB per second\.")


@pytest.mark.parametrize("mode", [[], ["zmq"], ["socket", "pull"], ["zmq", "sub", "debug"]])
def test_old_form_runs_the_authors_example(tool, mode):
    # Breaks: the commands of LightQ's introduction do not work.
    port = free_ports(40)
    broker = tool.start("broker", "queue", "-b", port, LEAT_ADMIN_PASSWORD=SECRET, LEAT_PASSWORD=SECRET)
    at = ["-b", f"tcp://127.0.0.1:{port}"]

    def consumer_has_joined():
        process = tool.start("consumer", "queue", *mode, *at, LEAT_PASSWORD=SECRET)
        time.sleep(1.5)  # On a busy machine, a refusal takes as long as a login.
        return process if process.poll() is None else None
    consumer = wait_for(consumer_has_joined, "the topic")
    produced = tool("producer", 2000, 100, "event", *at, LEAT_PASSWORD=SECRET)
    match_all(lines_of(produced), *old_lines(2000, 200000, "sent"))
    output, _ = consumer.communicate(timeout=WAIT_SECONDS)
    match_all(output.splitlines(), *old_lines(2001, 200004, "received"))
    assert consumer.returncode == 0
    broker.send_signal(signal.SIGTERM)
    assert broker.wait(WAIT_SECONDS) == 0


def test_elapsed_time_is_not_cut(serve, tool):
    # Breaks: LightQ's mistake: 8.9 s counted as 8 s.
    broker = serve()
    broker.create("t_1")
    options = ["-t", "t", "-b", uri_of(broker), "-p", PASSWORD]
    consumer = tool.start("consumer", *options, "-m", 4)
    broker.stats_become("t_1", subscribers_count=1)
    tool("producer", *options, "-m", 2)
    time.sleep(0.7)
    tool("producer", *options, "-m", 2)
    output, _ = consumer.communicate(timeout=WAIT_SECONDS)
    seconds = float(re.search(r"received \[4\] in \[([\d.]+)\]sec", output)[1])
    rate = float(re.search(r"received per second \[([\d.]+)\]", output)[1])
    assert seconds > 0.65 and rate == pytest.approx(4 / seconds, rel=0.02)


# --- Passwords ------------------------------------------------------------------------------------

def test_documented_password_is_for_this_machine_only(serve, tool):
    # Breaks: the password that everybody knows is sent to some machine, or protects a broker that others reach.
    port = free_ports(40)
    broker = tool.start("broker", "-b", port)
    at = f"tcp://127.0.0.1:{port}"
    done = wait_for(lambda: (made := tool("topic", "-b", at)).returncode == 0 and made)
    assert done.stderr.count("note:") == 2 and "which everybody knows" in done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    for words in (["producer", "-b", "tcp://localhost:5500"], ["consumer", "-b", "tcp://10.0.0.1:5500"],
                  ["topic", "-b", "tcp://127.0.0.2:5500"], ["broker", "-i", "0.0.0.0"]):
        done = tool(*words)
        one_line(done, 2, "password", "127.0.0.1 only")
    os.killpg(broker.pid, signal.SIGTERM)
    _, errors = broker.communicate(timeout=WAIT_SECONDS)
    assert "note: the password of lightq_admin" in errors and PASSWORD not in errors


def test_password_comes_from_a_file_and_is_not_shown(serve, tool, tmp_path):
    # Breaks: a password is in a log, or in the list of processes.
    port = free_ports(40)
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\nnot this\n")
    broker = tool.start("broker", "-b", port, "--password-file", file)
    at = f"tcp://127.0.0.1:{port}"
    files = ["--password-file", file]
    done = wait_for(lambda: (made := tool("topic", "-b", at, *files, "--admin-password-file",
                                          file)).returncode == 0 and made)
    assert done.stderr == ""
    done = tool("producer", "-b", at, "-m", 10, *files)
    assert done.returncode == 0 and done.stderr == ""
    done = tool("consumer", "-b", at, "-m", 10, "-p", "wrong")
    one_line(done, 4, "unauthorized_access", "password is wrong")
    command = Path(f"/proc/{broker.pid}/cmdline").read_bytes()
    assert b"leat-serve" in command and SECRET.encode() not in command
    os.killpg(broker.pid, signal.SIGTERM)
    output, errors = broker.communicate(timeout=WAIT_SECONDS)
    assert SECRET not in output + errors
    one_line(tool("producer", "-b", at, "--password-file", tmp_path / "missing"), 3, "missing")
    (tmp_path / "empty").touch()
    one_line(tool("producer", "-b", at, "--password-file", tmp_path / "empty"), 2, "no password")


# --- What is wrong is said ------------------------------------------------------------------------

@pytest.mark.parametrize("words, code, told", [
    (["producer", "-m", "0"], 2, ["-m", "'0'", "from 1"]),
    (["producer", "-m", "x"], 2, ["-m", "'x'"]),
    (["producer", "-s", "1048577"], 2, ["-s", "1048576"]),
    (["producer", "-n", "101"], 2, ["-n", "from 1 to 100"]),
    (["producer", "-b", "127.0.0.1"], 2, ["tcp://HOST:PORT"]),
    (["producer", "-b", "ipc://*:5500"], 2, ["ipc://*:5500", "tcp://"]),
    (["producer", "many"], 2, ["num_messages", "'many'"]),
    (["producer", "10", "0"], 2, ["msg_size", "'0'"]),
    (["producer", "10", "10", "event", "true"], 2, ["compress", "'true'", "false"]),
    (["producer", "1", "2", "3", "false", "5"], 2, ["'5'", "one argument too many"]),
    (["consumer", "-c", "nanomsg"], 2, ["-c", "nanomsg", "zmq|socket"]),
    (["consumer", "memory"], 2, ["broker_type", "memory", "queue"]),
    (["consumer", "queue", "zmq", "push"], 2, ["mode", "push", "pull|sub"]),
    (["topic", "-s", "direct"], 2, ["-s", "direct", "queue|file"]),
    (["topic", "--dir", "d"], 2, ["--dir", "leat lightq broker"]),
    (["producer", "--data-dir", "d"], 2, ["--data-dir"]), (["--dir", "d", "consumer"], 2, ["--dir"]),
    (["broker", "-b", "0"], 2, ["-b", "'0'", "65535"]),
    (["broker", "-t", "ipc"], 2, ["ipc", "tcp"]),
    (["broker", "-t", "pigeon"], 2, ["pigeon", "tcp"]),
    (["broker", "-u", "root"], 2, ["lightq_admin"]),
    (["producer", "--frobnicate"], 2, ["--frobnicate"]),
    (["produce"], 2, ["produce", "producer"]),
    (["producer", "-p", "x", "-b", "tcp://127.0.0.1:1"], 3, ["127.0.0.1:1", "is it running"]),
    (["consumer", "-p", "x", "-b", "tcp://no-such-host.invalid:1"], 3, ["no-such-host.invalid"]),
], ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "")
def test_wrong_input_gets_one_line(tool, words, code, told):
    # Breaks: nobody knows what was wrong, and what would be right.
    one_line(tool(*words), code, *told)


def test_broker_that_refuses_is_said(serve, tool):
    # Breaks: a topic that was not made counts as made.
    broker = serve()
    broker.create("t_1")
    options = ["-t", "t", "-b", uri_of(broker), "-p", PASSWORD]
    done = tool("topic", *options, "-d", broker.admin_password)
    assert done.stdout == "creating topic t_1\n"
    done.stdout = ""
    one_line(done, 3, "topic already exists")
    done = tool("topic", *options, "-d", "wrong")
    done.stdout = ""
    one_line(done, 4, "unauthorized_access")
    one_line(tool("consumer", "-t", "missing", "-b", uri_of(broker), "-p", PASSWORD), 3,
             "topic not found")


def test_producer_whose_broker_dies_says_what_arrived(serve, tool):
    # Breaks: a script goes on as if all messages had arrived.
    broker = serve()
    broker.create("t_1")
    process = tool.start("producer", "-t", "t", "-b", uri_of(broker), "-p", PASSWORD, "-m", 10**9)
    wait_for(lambda: broker.stats("t_1")["messages_received"] > 1000)
    broker.stop(signal.SIGKILL)
    _, errors = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 3
    assert re.fullmatch(r"leat: the broker at .* ended the connection.*: of \d+ messages, \d+ are known "
                        r"to be in topic 't_1'; .*\n", errors)


# --- As part of leat ------------------------------------------------------------------------------

def test_leat_lists_it_and_says_what_is_missing(leat, tmp_path):
    # Breaks: nobody finds it.
    assert re.search(r"^  lightq .*LightQ", leat("--help", check=True).stdout, re.M)
    alone = tmp_path / "leat"
    shutil.copy(leat.executable, alone)
    done = subprocess.run([alone, "lightq", "producer"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": "/nowhere"})
    one_line(done, 3, "leat-lightq", "make serve")


def test_it_has_a_manual_page_and_completions(leat):
    # Breaks: it is the one executable without them.
    executable = leat.executable.parent / "leat-lightq"
    page = subprocess.run([executable, "man"], capture_output=True, text=True, check=True).stdout
    assert "\n.TH LEAT-LIGHTQ 1 " in page and "leat lightq producer" in page
    script = subprocess.run([executable, "completion", "bash"], capture_output=True, text=True,
                            check=True).stdout
    assert "complete -F _leat-lightq_complete leat-lightq" in script
    done = leat("complete", "lightq", "consumer", "-c", "", check=True)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["zmq", "socket"]
