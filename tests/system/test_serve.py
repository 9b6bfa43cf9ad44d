"""If these tests failed, `leat serve` would forget topics or passwords, show them, leave clients without a
connection after a restart, be apart from the machine's own programs, or take CPU for nothing."""
import fcntl
import os
import random
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
import zmq

from broker import (ADMIN, PASSWORD, REFUSED, USER, Bytes, free_ports, subscribed, take, take_pairs,
                    wait_for, zmtp_hello)
from test_cli import info, one_line
from test_pub_sub import Reader


def one_line_of(done, code, *words):
    """As test_cli.one_line(), for a process that may name itself `leat-serve`."""
    done.stderr = done.stderr.replace("leat-serve: ", "leat: ", 1)
    one_line(done, code, *words)
    assert done.stdout == ""


# --- Starting and ending --------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_cleanly(serve, number):
    # Breaks: service managers report a failure at each stop.
    broker = serve()
    broker.create("test")
    push, pull = broker.producer("test"), broker.puller("test")
    push.send(b"x")
    take(pull, 1)
    assert broker.stop(number) == 0, broker.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_right_after_it_is_ready_is_taken(serve, number):
    # Breaks: a service manager that stops or reloads what it just started kills it, with what clients have sent.
    broker = serve()
    for _ in range(10):
        assert broker.stop() == 0, broker.log()
        ready, told = os.pipe()
        with open(broker.log_file, "ab") as log:
            broker.process = subprocess.Popen(broker.command_with("--ready-fd", str(told)), stderr=log,
                                              env=broker.environment(), pass_fds=[told])
        os.close(told)
        assert os.read(ready, 20) == f"{broker.port}\n".encode()
        os.close(ready)
        already = broker.log().count("read the configuration again")
        broker.process.send_signal(number)
        if number == signal.SIGHUP:
            wait_for(lambda: broker.log().count("read the configuration again") > already, "reading it again")
        else:
            assert broker.process.wait(10) == 0, broker.log()
            broker.start()


def test_log_says_who_may_use_data_ports(serve, tmp_path):
    # Breaks: an administrator does not see that a broker, or one of its topics, is open to everybody.
    file = tmp_path / "leat.toml"
    file.write_text("data_auth = 'joined'\n")
    broker = serve("--config", str(file))
    wait_for(lambda: ", data_auth joined\n" in broker.log(), "the server's")
    broker.create("usual")
    broker.create("free", data_auth="open")
    assert "topic usual was created, type queue, data_auth joined\n" in broker.log()
    assert "topic free was created, type queue, data_auth open\n" in broker.log()
    file.write_text("data_auth = 'open'\n")
    broker.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "read the configuration again; data_auth open\n" in broker.log(), "the new one")


def test_refused_connections_do_not_fill_the_log(serve):
    # Breaks: a stranger fills the disk with one line for each connection that is refused.
    broker = serve("--limits-connections", "1")
    before = len(broker.log().splitlines())
    sockets = [socket.create_connection(("127.0.0.1", broker.port), timeout=10) for _ in range(600)]
    assert sockets[-1].recv(1) == b"", "it is not refused"
    assert "there are 1 connections, the limit" in broker.log()
    assert len(broker.log().splitlines()) - before < 100
    for one in sockets:
        one.close()


def test_administrator_gets_a_password_of_its_own(serve):
    # Breaks: everybody knows the administrator's password, as LightQ's, or can read it.
    broker, other = serve(), serve()
    file = broker.state / "admin-password"
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(broker.admin_password) >= 16 and broker.admin_password != other.admin_password
    before = broker.admin_password
    broker.stop()
    broker.start()
    assert broker.admin_password == before
    broker.create("test")


@pytest.mark.parametrize("options, words", [
    (["--frobnicate"], ["--frobnicate"]), (["--lightq-prot", "1"], ["--lightq-prot"]),
    (["--lightq-port", "x"], ["'x'"]), (["--lightq-port", "70000"], ["70000"]),
    (["--lightq-port"], ["--lightq-port"]), (["--data-auth", "nobody"], ["nobody", "password", "open"]),
    (["--lightq-data-ports", "9-8"], ["9-8"]), (["more"], ["more"]),
    (["--lightq-addresses", "0.0.0.0"], ["insecure", "0.0.0.0"]),
], ids=lambda value: " ".join(value)[:40])
def test_wrong_options_get_one_line(serve, options, words):
    # Breaks: a broker that runs with other settings than its administrator believes.
    broker = serve()
    broker.stop()
    done = broker.run(*options)
    one_line_of(done, 2, *words)


@pytest.mark.parametrize("text, words", [
    ("[lightq]\n# a comment\nprot = 5600\n", [":3", "lightq.prot", "lightq.port"]),
    ("data_auht = 'open'\n", [":1", "data_auht", "data_auth"]),
    ("\n\ndata_auth = 'nobody'\n", [":3", "data_auth", "joined"]),
    ("[limits]\ntopics = -1\n", [":2", "limits.topics"]),
    ("data_auth = \n", [":1"]),
])
def test_wrong_configuration_names_its_line(serve, tmp_path, text, words):
    # Breaks: a wrong spelling in the configuration is found only when an attacker finds it.
    file = tmp_path / "leat.toml"
    file.write_text(text)
    broker = serve()
    broker.stop()
    one_line_of(broker.run("--config", file), 2, str(file), *words)


def test_missing_configuration_is_said(serve):
    # Breaks: a broker whose configuration was not found runs without it.
    broker = serve()
    broker.stop()
    done = broker.run("--config", "/nowhere/leat.toml")
    one_line_of(done, done.returncode, "/nowhere/leat.toml")
    assert done.returncode in (2, 3)


@pytest.fixture
def reconfigured(serve, tmp_path):
    """`reconfigured(text, wanted)`: a broker with open data ports, a producer and a puller, after its file got this
    text and its log these words."""
    def change(text, wanted):
        file = tmp_path / "leat.toml"
        file.write_text("data_auth = 'open'\n")
        broker = serve("--config", file)
        broker.plain = False
        broker.create("test")
        push, pull = broker.producer("test"), broker.puller("test")
        file.write_text(text)
        broker.process.send_signal(signal.SIGHUP)
        wait_for(lambda: wanted in broker.log() or broker.process.poll() is not None, "the answer")
        assert broker.process.poll() is None, "the signal ended it"
        return broker, push, pull
    return change


def test_configuration_is_taken_and_a_wrong_new_one_changes_nothing(reconfigured):
    # Breaks: reloading a file with a mistake stops the broker, or half of it takes effect.
    broker, push, pull = reconfigured("data_auth = 'password'\nnonsense = 1\n", "nonsense")
    broker.producer("test").send(b"as before")
    assert take(pull, 1) == [b"as before"]
    push.send(b"still")
    assert take(pull, 1) == [b"still"]


def test_right_new_configuration_counts_at_once(reconfigured):
    # Breaks: whoever tightens a setting has to cut off everybody.
    broker, push, pull = reconfigured(
        "data_auth = 'password'\n[log]\nfile = 'x'\n[limits]\nidle_time = '200ms'\n",
        "from the next start: log.file")
    _, watch = broker.connect(zmq.PULL, broker.join("test", "pull"), password=None)
    watch.until(REFUSED)
    push.send(b"still")
    assert take(pull, 1) == [b"still"]
    with Bytes(broker.port, zmtp_hello(b"REQ")) as silent:
        assert silent.is_closed()
    with Bytes(broker.port) as used:
        for _ in range(4):
            time.sleep(0.1)
            assert used.ask({"cmd": "ping"}) == b"pong"
        assert used.is_closed()


def test_second_broker_on_the_same_state_is_refused(serve):
    # Breaks: two brokers give different topics the same port, or undo each other's changes.
    broker = serve()
    one_line_of(broker.run("--lightq-port", str(free_ports(10))), 3, str(broker.state))
    assert broker.ask({"cmd": "ping"}) == b"pong"


def test_port_that_is_in_use_is_named(serve):
    # Breaks: nobody knows why the broker does not start.
    broker = serve()
    done = broker.run("--state-dir", str(broker.state) + "-2")
    done.stderr = done.stderr.splitlines(keepends=True)[-1]  # After that of the new password.
    one_line_of(done, 3, str(broker.port))


def test_leat_serve_runs_it(serve, leat):
    # Breaks: the documented command does not start the broker.
    broker = serve()
    done = leat("serve", "--state-dir", broker.state, "--lightq-port", str(free_ports(10)))
    one_line_of(done, 3, str(broker.state))
    done = leat("--data-dir", broker.data, "serve", "--state-dir", broker.state, "--lightq-port",
                str(free_ports(10)))
    one_line_of(done, 3, str(broker.state))


def test_all_ports_are_local(serve):
    # Breaks: other machines reach data that is sent without encryption (LightQ's data ports are open to all).
    broker = serve()
    broker.create("test")
    for role in "pub", "pull", "sub":
        broker.join("test", role)
    listening = {}
    for table, local in ("tcp", "0100007F"), ("tcp6", "00000000000000000000000001000000"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, port = line.split()[1].split(":")
            if line.split()[3] == "0A" and broker.port <= int(port, 16) <= broker.port + 3:
                listening.setdefault(int(port, 16), []).append(address)
                assert address == local, line
    assert len(listening) == 4


# --- Ports ----------------------------------------------------------------------------------------

def test_port_of_another_program_is_left_to_it(serve):
    # Breaks: clients are told to connect to some other program, as by LightQ, which never looks.
    first = free_ports(40)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 1))
        taken.listen()
        broker = serve(port=first)
        broker.create("test")
        assert broker.join("test", "pub") == f"tcp://127.0.0.1:{first + 2}"


def test_no_port_left_is_said(serve):
    # Breaks: a client is told to connect to a port where nobody is.
    first = free_ports(20)
    broker = serve("--lightq-data-ports", f"{first + 10}-{first + 12}", port=first)
    broker.create("test")
    broker.create("more")
    assert broker.join("test", "pull") == f"tcp://127.0.0.1:{first + 11}"
    assert broker.join("test", "pub") == f"tcp://127.0.0.1:{first + 12}"
    answer = broker.ask(broker.join_command("more", "pub"))
    assert answer == {"cmd": "join", "status": "error",
                      "description": f"no free port in {first + 10}-{first + 12}"}
    assert broker.join("test", "sub") == f"tcp://127.0.0.1:{first + 10}"


# --- Restart --------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_clients_go_on_after_a_restart(serve, number):
    # Breaks: after an update or a crash every client must be started again, or has another topic's port.
    broker = serve()
    broker.create("test")
    broker.create("other", password="another")
    uri = {role: broker.join("test", role) for role in ("pull", "pub", "sub")}
    other = broker.join("other", "pub", "another")
    push, pull, sub = broker.producer("test"), broker.puller("test"), broker.subscriber("test")
    subscribed(push, sub)
    push.send(b"before")
    assert take(pull, 1) == [b"before"] and take_pairs(sub, 1) == [(b"test", b"before")]
    broker.stop(number)
    broker.start()

    got = {pull: False, sub: False}

    def both_got_one():
        push.send(b"after")
        for each in got:
            while each.poll(10):
                got[each] |= each.recv_multipart()[-1] == b"after"
        return all(got.values())
    wait_for(both_got_one, "a message after the restart", 20)
    assert {role: broker.join("test", role) for role in uri} == uri
    assert broker.join("other", "pub", "another") == other
    answer = broker.ask(broker.join_command("test", "pull", "wrong"))
    assert answer["description"] == "unauthorized_access"
    answer = broker.ask({"cmd": "create_topic", "topic": "test", "admin_user_id": ADMIN,
                         "admin_password": broker.admin_password})
    assert answer["description"] == "topic already exists"
    broker.create("third")
    assert broker.join("third", "pub") not in {*uri.values(), other}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_messages_that_wait_outlive_the_broker(serve, number):
    # Breaks: an update of the broker loses what its consumers had not taken yet.
    broker = serve()
    broker.create("test")
    push = broker.producer("test")
    for i in range(1000):
        push.send(b"%d" % i)
    broker.stats_become("test", queue_size=1000)
    push.close(linger=0)
    broker.stop(number)
    broker.start()
    pull = broker.puller("test")
    assert take(pull, 1000) == [b"%d" % i for i in range(1000)]
    broker.stats_become("test", messages_received=1000, messages_sent=1000, queue_size=0)


# --- Together with local programs -----------------------------------------------------------------

def test_local_subscriber_sees_what_remote_producers_send(serve, leat):
    # Breaks: the machine's own programs and the remote ones are on different topics.
    broker = serve()
    broker.create("test")
    push = broker.producer("test")
    push.send(b"first")
    broker.stats_become("test", messages_received=1)
    sub = leat.start("sub", "test", "--from", "beginning", "--dir", broker.dir)
    output = Reader(sub.stdout)
    output.until("first\n")
    for i in range(1000):
        push.send(b"%d" % i)
    assert output.until("\n999\n") == "first\n" + "".join(f"{i}\n" for i in range(1000))


def test_remote_consumers_get_what_local_programs_publish(serve, leat):
    # Breaks: the same, the other way round; and a broker that sleeps is not woken.
    broker = serve()
    broker.create("test")
    push, pull, sub = broker.producer("test"), broker.puller("test"), broker.subscriber("test")
    subscribed(push, sub)
    leat("pub", "test", "--dir", broker.dir, input="hello\n\nworld\n", check=True)
    assert take(pull, 3) == [b"hello", b"", b"world"]
    assert take_pairs(sub, 3) == [(b"test", text) for text in (b"hello", b"", b"world")]
    assert broker.stats("test")["publishers_count"] == 1


def test_local_programs_do_not_need_the_broker(serve, leat):
    # Breaks: a crash of the broker stops programs that have nothing to do with it.
    broker = serve()
    broker.create("test")
    broker.join("test", "pub")
    broker.join("test", "pull")
    sub = leat.start("sub", "test", "--dir", broker.dir)
    wait_for(lambda: sub.pid in [each["pid"] for each in info(leat, "test")["participants"]],
             "a subscription")
    broker.stop(signal.SIGKILL)
    leat("pub", "test", "--dir", broker.dir, input="without it\n", check=True)
    Reader(sub.stdout).until("without it\n")
    broker.start()
    assert take(broker.puller("test"), 1) == [b"without it"]


def test_names_stay_inside_their_directories(serve, tmp_path):
    # Breaks: whoever may create topics can write files anywhere (in LightQ: ../ in a topic's name).
    broker = serve()
    before = set(tmp_path.parent.rglob("*")) | set(broker.dir.parent.glob("*"))
    admin = {"cmd": "create_topic", "admin_user_id": ADMIN, "admin_password": broker.admin_password,
             "user_id": USER, "password": PASSWORD}
    for topic in ("../evil", "../../../../tmp/evil", "/tmp/evil", ".", "..", "a/b", "a\0b", "+evil",
                  "x" * 5000, "a b", "ä", "\n", "%s%n", "'; drop table topics; --"):
        answer = broker.ask({**admin, "topic": topic})
        assert answer["status"] in ("ok", "error") and answer["description"]
        if answer["status"] == "ok":
            assert broker.join(topic, "pull")
    outside = (set(tmp_path.parent.rglob("*")) | set(broker.dir.parent.glob("*"))) - before
    inside = (str(broker.dir), str(broker.data), str(broker.state), str(broker.log_file))
    assert not [path for path in outside if not str(path).startswith(inside)
                and "evil" in path.name]
    broker.create("good")


# --- Passwords ------------------------------------------------------------------------------------

def test_passwords_are_nowhere_to_be_found(serve):
    # Breaks: whoever may read a log, a backup or the list of processes has the passwords.
    broker = serve("--log-level", "trace")
    secret, guess, payload = "Sm4ragd-Kolibri", "Falsch-Topas-9", b"payload-Aquamarin"
    broker.create("test", password=secret)
    push, _ = broker.connect(zmq.PUSH, broker.join("test", "pub", secret), secret)
    pull, _ = broker.connect(zmq.PULL, broker.join("test", "pull", secret), secret)
    push.send(payload)
    assert take(pull, 1) == [payload]
    broker.ask(broker.join_command("test", "pull", guess))
    broker.ask({"cmd": "create_topic", "topic": "x", "admin_user_id": ADMIN, "admin_password": guess})
    broker.ask(b'{"cmd":"join","password":"' + guess.encode() + b'"')  # No JSON.
    admin_password = broker.admin_password
    command = Path(f"/proc/{broker.process.pid}/cmdline").read_bytes()
    broker.stop()
    searched = {"command line": command, "log": broker.log().encode(),
                 "output": Path(f"{broker.log_file}.stdout").read_bytes()}
    for directory in broker.state, broker.data:
        searched.update({path: path.read_bytes() for path in directory.rglob("*")
                          if path.is_file() and path.name != "admin-password"})
    assert any(path for path in searched if str(path).startswith(str(broker.state)))
    for place, data in searched.items():
        for word in secret, guess, admin_password:
            assert word.encode() not in data, f"{word} in {place}"
    assert payload not in searched["log"]


def test_guessing_is_limited_and_shuts_nobody_out(serve):
    # Breaks: passwords can be guessed at full speed, or a guesser shuts out all the others.
    broker = serve()
    broker.create("test")
    broker.create("other", password="another")
    broker.join("other", "pull", "another")
    patient = {"rcvtimeo": 30_000}  # Who guesses too often is told so ten seconds later.
    guesser = broker.admin(**patient)

    def guess(number):
        command = broker.join_command("test", "pull", f"guess {number}")
        return broker.ask(command, guesser)["description"]
    answers = [guess(number) for number in range(5)]
    assert set(answers) <= {"unauthorized_access", "too many attempts"}
    assert answers[0] == "unauthorized_access"
    wait_for(lambda: guess(random.randrange(1 << 30)) == "too many attempts", "the limit")
    assert broker.join("other", "pull", "another")
    push, watch = broker.connect(zmq.PUSH, broker.join("other", "pub", "another"), "another")
    watch.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    push.send(b"x")
    for _ in range(6):
        guess(random.randrange(1 << 30))
    # Names are not told either: after so many, an unknown topic gets the same answer.
    asker = broker.admin(**patient)
    unknown = [broker.ask(broker.join_command(f"unknown {i}", "pull"), asker)["description"]
               for i in range(10)]
    assert "too many attempts" in unknown and set(unknown) <= {"too many attempts", "topic not found"}
    # Who comes with the right one waits for a turn, and gets in.
    assert broker.ask(broker.join_command("test", "pull"), broker.admin())["status"] == "ok"


# --- Many, and idle -------------------------------------------------------------------------------

def idle_share(broker, seconds=2):
    """The part of one CPU that the broker takes while nothing happens."""
    before = broker.cpu_seconds()
    time.sleep(seconds)
    share = (broker.cpu_seconds() - before) / seconds
    print(f"idle: {share:.1%} of a CPU, {broker.resident_bytes() >> 20} MiB")
    return share


def test_first_message_after_silence_and_no_cpu_meanwhile(serve):
    # Breaks: a broker that looks every 20 ms, as LightQ's, delays messages and empties batteries.
    broker = serve()
    broker.create("test")
    push, pull, sub = broker.producer("test"), broker.puller("test"), broker.subscriber("test")
    subscribed(push, sub)
    assert idle_share(broker) < 0.1
    began = time.monotonic()
    push.send(b"first")
    assert take(pull, 1) == [b"first"]
    print(f"first message after {(time.monotonic() - began) * 1000:.2f} ms")
    assert time.monotonic() - began < 1
    assert take_pairs(sub, 1) == [(b"test", b"first")]


def test_hundred_topics_work_and_cost_nothing(serve):
    # Breaks: topics that nobody uses take threads, memory or CPU (each of LightQ's takes 160 MiB).
    broker = serve("--limits-topic-idle-time", "300ms", ports=340)
    topics = [f"topic.{i}" for i in range(100)]
    for i, topic in enumerate(topics):
        broker.create(topic, broker_type="queue" if i % 10 else "file")
    broker.join(topics[1], "pull")
    in_memory = sum(path.stat().st_blocks * 512 for path in broker.dir.rglob("*"))
    assert in_memory < 32 << 20, f"{in_memory >> 20} MiB for one empty topic"
    uris = {topic: (broker.join(topic, "pull"), broker.join(topic, "pub")) for topic in topics}
    assert len({uri for pair in uris.values() for uri in pair}) == 200
    pulls, messages = {}, [b"x" * 10_000] * 50
    for topic in topics:
        push, pulls[topic] = (broker.connect(kind, uri)[0]
                              for kind, uri in zip((zmq.PUSH, zmq.PULL), reversed(uris[topic])))
        for message in [topic.encode(), *messages]:
            push.send(message)
    for topic, pull in pulls.items():
        assert take(pull, 51) == [topic.encode(), *messages]
    assert broker.has_open_topics()
    broker.hang_up()
    wait_for(lambda: not broker.has_open_topics(), "the end of the last topic")
    time.sleep(2.5)  # By then, memory has been freed.
    assert idle_share(broker, 3) < 0.02  # A few ticks of the clock.
    assert broker.resident_bytes() < 50_000_000 or broker.is_sanitized()
    broker.stop()
    broker.start()
    for topic in random.sample(topics, 10):
        assert (broker.join(topic, "pull"), broker.join(topic, "pub")) == uris[topic]


def test_thousand_topics_exist_and_work(serve, many_files):
    # Breaks: a device or a customer has a topic of its own, and at some number of them nothing goes on.
    broker = serve(ports=2500)
    topics = [f"topic.{i}" for i in range(1000)]
    for topic in topics:
        broker.create(topic)
    used = random.sample(topics, 100)  # To check a password takes as long as to create a topic.
    pairs = [(topic, broker.producer(topic), broker.puller(topic)) for topic in used]
    for topic, push, _ in pairs:
        push.send(topic.encode())
    for topic, _, pull in pairs:
        assert take(pull, 1) == [topic.encode()]
    broker.stop()
    began = time.monotonic()
    broker.start()
    print(f"ready after {(time.monotonic() - began) * 1000:.0f} ms")
    for _, push, pull in pairs:  # They have come back by themselves.
        push.send(b"again")
        assert take(pull, 1) == [b"again"]
    with Bytes(broker.port) as admin:
        listed = admin.ask({"cmd": "list_topics", "admin_user_id": ADMIN,
                            "admin_password": broker.admin_password})
    assert len(listed["topics"]) == 1000


def test_thousand_idle_connections_disturb_nobody(serve, many_files):
    # Breaks: a fleet of clients that wait for rare messages takes a machine of its own.
    broker = serve()
    broker.create("test")
    broker.join("test", "pull")
    idle = []
    try:
        for _ in range(1000):
            idle.append(Bytes(broker.port))
            idle[-1].send_framed(broker.join_command("test", "pull"))
        assert all(each.read_framed()["status"] == "ok" for each in idle)
        assert idle_share(broker, 1) < 0.1
        assert broker.resident_bytes() < 100 << 20
        push, pull = broker.producer("test"), broker.puller("test")
        for i in range(1000):
            push.send(b"%d" % i)
        assert take(pull, 1000) == [b"%d" % i for i in range(1000)]
        assert idle[-1].ask({"cmd": "ping"}) == b"pong"
        assert len(os.listdir(f"/proc/{broker.process.pid}/task")) < 50
    finally:
        for each in idle:
            each.close()


def connects(broker):
    try:
        socket.create_connection(("127.0.0.1", broker.port)).close()
        return True
    except OSError:
        assert broker.process.poll() is None, broker.process.returncode
        return False


def test_log_that_nobody_reads_does_not_stop_the_broker(serve):
    # Breaks: a supervisor that hangs takes the broker with it, and any client can fill its pipe.
    broker = serve()
    broker.stop()
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 8192)
    os.set_blocking(reader, False)
    broker.process = subprocess.Popen(broker.command_with("--log-level", "trace"), stderr=writer,
                                      stdout=subprocess.DEVNULL, env=broker.environment())

    def is_full():
        return not select.select([], [writer], [], 0)[1]

    def knock():
        with socket.create_connection(("127.0.0.1", broker.port)) as client:
            client.sendall(b"\xff" * 12)

    wait_for(lambda: connects(broker), "listening")
    end = time.monotonic() + 60
    while not is_full() and time.monotonic() < end:
        knock()
    assert is_full()
    for _ in range(20):  # More than once a second, so that some of it is to be logged.
        knock()
        with Bytes(broker.port) as client:
            assert client.ask({"cmd": "ping"}) == b"pong"
        time.sleep(0.1)
    os.close(writer)
    log = os.read(reader, 1 << 20)
    assert broker.stop() == 0
    while more := os.read(reader, 1 << 20):  # b"" at the end: nobody has the other one.
        log += more
    os.close(reader)
    assert b"lines are missing here" in log, log
