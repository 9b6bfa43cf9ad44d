"""If these tests failed, `leat serve` would run out of topics or connections and not say so, could not be stopped while it waits,
its clients would hang when it hangs, or LightQ's programs would read other bytes than LightQ sent."""
import functools
import json
import re
import select
import signal
import socket
import struct
import subprocess

import pytest
import zmq

from broker import ADMIN, PASSWORD, USER, WAIT_SECONDS, Bytes, take, take_pairs, wait_for
from test_cli import one_line
from test_serve_raw import Raw, connected, join

KEPT_FOR_COMMANDS = 100  # Connections beyond the limit, so that administrators get in.
KEPT_TO_BE_TOLD = 64  # Further ones, who are told that they do not.


# --- Topics and connections -----------------------------------------------------------------------

def answer_to_create(broker, topic):
    return broker.ask({"cmd": "create_topic", "admin_user_id": ADMIN, "topic": topic, "user_id": USER,
                       "admin_password": broker.admin_password, "password": PASSWORD})


def test_topics_have_a_limit(serve):
    # Breaks: a program that makes topics in a loop takes all ports and the memory (160 MiB for each of LightQ's).
    broker = serve("--limits-topics", "3")
    for topic in "one", "two", "three":
        broker.create(topic)
    refusal = {"cmd": "create_topic", "status": "error",
               "description": "there are 3 topics already, the limit"}
    assert answer_to_create(broker, "four") == refusal
    assert answer_to_create(broker, "one")["description"] == "topic already exists"
    push, pull = broker.producer("one"), broker.puller("one")
    push.send(b"as before")
    assert take(pull, 1) == [b"as before"]
    broker.stop()
    broker.start()
    assert answer_to_create(broker, "four") == refusal
    assert broker.ask({"cmd": "delete_topic", "topic": "two", "admin_user_id": ADMIN,
                       "admin_password": broker.admin_password})["status"] == "ok"
    broker.create("four")
    assert answer_to_create(broker, "five") == refusal
    assert broker.join("four", "pull")


def let_in(place, source=None):
    """A new subscriber; None if the broker refused its connection, and said why."""
    port, token = place
    client = Raw(port, source=source)
    client.send_message(json.dumps({"type": "sub", "token": token}).encode())
    answer = json.loads(client.read_message())
    if answer["status"] == "error":
        assert answer["description"].startswith("too many connections")
        assert client.is_closed()
        return None
    assert answer == {"status": "ok", "topic": "test"}
    return client


def pass_a_message(producer, subscribers, text):
    producer.send_message(text)
    assert [each.read_message() for each in subscribers] == [text] * len(subscribers)


@pytest.mark.parametrize("flag, reason", [
    ("--limits-connections", "there are 6 connections, the limit"),
    ("--limits-connections-per-address", "its address has 6 connections, the limit")])
def test_connections_have_a_limit(serve, flag, reason):
    # Breaks: clients that come again and again take all descriptors, or one that was refused never gets in.
    broker = serve(flag, "6")
    broker.create("test")
    place = join(broker, "test", "sub")
    producer = connected(broker, "test", "pub")
    inside = [let_in(place) for _ in range(4)]  # With the producer and the connection for commands, 6.
    assert None not in inside
    refused = re.compile(rf"\[warning\] 127\.0\.0\.1:\d+ is refused: {reason}\n")
    assert not refused.search(broker.log())
    assert let_in(place) is None
    wait_for(lambda: refused.search(broker.log()), "the reason")
    assert let_in(place, "127.0.0.2") is None  # For limits, this machine is one address.
    pass_a_message(producer, inside, b"for all who are inside")
    for text in b"one", b"two":
        inside.pop(0).close()
        inside.append(wait_for(lambda: let_in(place), "its place"))
        assert let_in(place) is None
        pass_a_message(producer, inside, text)
    # ZeroMQ's clients come again by themselves.
    sub, watch = broker.connect(zmq.SUB, broker.join("test", "sub"), subscribe=b"test")
    watch.until(zmq.EVENT_DISCONNECTED)
    assert zmq.EVENT_HANDSHAKE_SUCCEEDED not in watch.poll(300)
    inside.pop().close()
    watch.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)

    def arrives():
        pass_a_message(producer, inside, b"three")
        return sub.poll(20)
    wait_for(arrives, "its subscription")
    assert take_pairs(sub, 1) == [(b"test", b"three")]


def ask_framed(port, command):
    with Bytes(port) as client:
        answer = client.ask(command)
        assert answer == b"pong" or client.is_closed()
        return answer


def test_refused_clients_have_a_limit_too(serve):
    # Breaks: those who are told that there are too many connections are too many, for ever.
    broker = serve("--limits-connections", "1", "--limits-handshake-time", "60s")
    with Bytes(broker.port) as inside:
        assert inside.ask({"cmd": "ping"}) == b"pong"
        more = [Bytes(broker.port) for _ in range(KEPT_FOR_COMMANDS)]
        assert all(each.ask({"cmd": "ping"}) == b"pong" for each in more)
        crowd = [Bytes(broker.port) for _ in range(KEPT_TO_BE_TOLD + 50)]
        assert all(each.is_closed() for each in crowd)  # At once, or after a second.
        assert ask_framed(broker.port, {"cmd": "ping"})["status"] == "error"
        assert inside.ask({"cmd": "ping"}) == b"pong"
        for each in more + crowd:
            each.close()
    wait_for(lambda: broker.log().count("is refused") >= 10, "the reason")


@pytest.mark.parametrize("flag", ["--limits-connections", "--limits-connections-per-address"])
def test_administrators_get_in_beyond_the_limit_but_not_all(serve, leat, flag):
    # Breaks: when clients have taken all places, nobody can ask the broker why; or commands have no limit.
    broker = serve(flag, "2", "--limits-handshake-time", "60s")
    opened = [Bytes(broker.port) for _ in range(2 + KEPT_FOR_COMMANDS)]
    assert opened[-1].ask({"cmd": "ping"}) == b"pong"
    reason = "too many connections" + " from this address" * ("address" in flag)
    # Whatever they ask, they are told why, and then closed.
    assert ask_framed(broker.port, {"cmd": "list_topics"}) == {"cmd": "", "status": "error", "description": reason}
    leat.environment["LEAT_PASSWORD"] = broker.admin_password
    one_line(leat("topic", "list", "--broker", f"lightq://{ADMIN}@127.0.0.1:{broker.port}"), 3,
             f"refuses: {reason}: try again in a second")
    with Bytes(broker.port) as silent:
        assert silent.is_closed()
    # ZeroMQ's clients come again by themselves, and their request with them.
    patient = broker.admin()
    patient.send_json({"cmd": "ping"})
    assert not patient.poll(500)
    opened.pop(0).close()
    assert patient.recv() == b"pong"
    opened.pop(0).close()

    def answers():
        try:
            return ask_framed(broker.port, {"cmd": "ping"}) == b"pong"
        except (AssertionError, ConnectionError):  # Those who were told are still there.
            return False
    wait_for(answers, "its place")
    assert all(each.ask({"cmd": "ping"}) == b"pong" for each in opened)
    for each in opened:
        each.close()


# --- Stopping -------------------------------------------------------------------------------------

@pytest.fixture
def full(serve, leat):
    """A broker that has read more from a producer than its topic takes; and how much the topic has."""
    broker = serve()
    leat("topic", "create", "test", "--capacity", "1MiB", check=True)
    broker.create("test")
    with connected(broker, "test", "pub") as producer:
        producer.send_message(*[b"%05d" % i + b"x" * 10_000 for i in range(200)])
        placed = producer.read_count()
        while select.select([producer.socket], [], [], 0.3)[0]:
            placed = producer.read_count()
        assert 50 < placed < 200
        yield broker, placed


def is_stopping(broker):
    return "signal 15: stopping; a second one ends at once\n" in broker.log()


def numbers(messages):
    return [int(message[:5]) for message in messages]


def test_broker_that_stops_says_what_found_no_room(full):
    # Breaks: a broker whose topic is full never stops, or loses messages and does not say so.
    broker, placed = full
    assert broker.stop() == 0
    assert re.search(r"\[warning\] \d+ messages are lost: their topics are full\n", broker.log())
    broker.start()
    with connected(broker, "test", "pull") as puller:
        assert numbers(puller.read_messages(placed)) == list(range(placed))


def test_broker_that_stops_waits_for_room(full, leat, tmp_path):
    # Breaks: what a client has sent is lost at each update of the broker, though a consumer was about to make room.
    broker, placed = full
    broker.process.send_signal(signal.SIGTERM)
    wait_for(lambda: is_stopping(broker), "the beginning of the end")
    with open(tmp_path / "taken", "wb") as taken:
        leat.start("sub", "test", "--group", "lightq", stdout=taken)
    assert broker.process.wait(WAIT_SECONDS) == 0
    assert "are lost" not in broker.log()

    got = wait_for(lambda: numbers((tmp_path / "taken").read_bytes().split(b"\n")[placed:-1]), "what found room")
    assert got == list(range(placed, placed + len(got)))


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_second_signal_ends_it_at_once(full, second):
    # Breaks: who cannot wait has to kill it, and a service manager cannot tell one from the other.
    broker, placed = full
    broker.process.send_signal(signal.SIGTERM)
    wait_for(lambda: is_stopping(broker), "the beginning of the end")
    assert broker.process.poll() is None
    assert broker.stop(second) == -second  # A shell says 143 or 130.
    assert "are lost" not in broker.log(), "it waited for room until the end"
    broker.start()
    with connected(broker, "test", "pull") as puller:
        assert numbers(puller.read_messages(placed)) == list(range(placed))
    push, pull = broker.producer("test"), broker.puller("test")
    push.send(b"hello")
    messages = take(pull, 1)
    while messages[-1] != b"hello":  # Behind what was given to the log before the end, and not counted.
        messages += take(pull, 1)


# --- A broker that hangs --------------------------------------------------------------------------

C_CLIENT = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.init_producer.restype = ctypes.c_void_p
print(library.init_producer(*(word.encode() for word in sys.argv[2:])))
"""


def test_clients_of_a_broker_that_hangs_end_with_a_sentence(serve, leat):
    # Breaks: a script hangs for ever at a broker that is dead or stopped, as each of LightQ's clients does.
    broker = serve()
    broker.create("test")
    uri = f"tcp://127.0.0.1:{broker.port}"
    at, tcp = ["--broker", f"lightq://{USER}@127.0.0.1:{broker.port}"], ["-b", uri]
    as_admin = ["--broker", f"lightq://{ADMIN}@127.0.0.1:{broker.port}"]
    environment = {**leat.environment, "LEAT_PASSWORD": PASSWORD, "LEAT_ADMIN_PASSWORD": broker.admin_password}
    broker.process.send_signal(signal.SIGSTOP)
    try:
        clients = [leat.start(*words, env=environment, stdin=subprocess.DEVNULL) for words in (
            ["topic", "info", "test", *at], ["topic", "list", *as_admin], ["pub", "test", "hello", *at],
            ["sub", "test", *at], ["sub", "test", "--group", "lightq", *at],
            ["lightq", "topic", *tcp], ["lightq", "producer", *tcp], ["lightq", "consumer", *tcp],
            ["lightq", "producer", "10", *tcp], ["lightq", "consumer", "queue", *tcp])]
        program = subprocess.Popen(
            ["/usr/bin/python3", "-c", C_CLIENT, leat.executable.parent / "libleat-lightq.so", USER, PASSWORD,
             "test", uri], stdout=subprocess.PIPE, text=True)
        for client in clients:
            output, errors = client.communicate(timeout=60)
            done = subprocess.CompletedProcess(client.args, client.returncode, output, errors)
            one_line(done, 1, f"the broker at 127.0.0.1:{broker.port}: no answer in time")
        assert program.communicate(timeout=60)[0] == "None\n"
    finally:
        broker.process.send_signal(signal.SIGCONT)
    push, pull = broker.producer("test"), broker.puller("test")
    push.send(b"it goes on")
    assert take(pull, 1) == [b"it goes on"]


# --- The bytes of LightQ's clients ----------------------------------------------------------------

# What libzmq sends: its signature; when it has seen that of the other side, the version; when it has seen the other's, the
# rest of the 64 bytes; then READY. LightQ's libzmq spoke ZMTP 3.0.
SIGNATURE = b"\xff\0\0\0\0\0\0\0\x01\x7f"
MAJOR, MINOR = b"\x03", b"\0"
MECHANISM = b"NULL" + bytes(16) + bytes(32)
READY = {kind: b"\x04" + bytes([22 + len(kind)]) + b"\x05READY\x0bSocket-Type\0\0\0" + bytes([len(kind)]) + kind
         for kind in (b"PUSH", b"PULL", b"SUB", b"REP", b"PUB")}
READY[b"REQ"] = b"\x04\x26\x05READY\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0"
PARTNERS = {b"REQ": b"REP", b"PUSH": b"PULL", b"PULL": b"PUSH", b"SUB": b"PUB"}
OUR_SIGNATURE = b"\xff" + bytes(8) + b"\x7f"  # The broker's; ZMTP leaves these 8 bytes open.


def frame(body, flags=0):
    if len(body) > 255:
        return bytes([flags | 2]) + struct.pack(">Q", len(body)) + body
    return bytes([flags, len(body)]) + body


def as_libzmq(port, kind):
    """A connection after the handshake, each step of which is as it has to be."""
    client = Bytes(port, SIGNATURE)
    assert client.read(12) == OUR_SIGNATURE + MAJOR + MINOR
    client.send(MAJOR)
    client.send(MINOR + MECHANISM)
    assert client.read(52) == MECHANISM
    client.send(READY[kind])
    assert client.read(len(READY[PARTNERS[kind]])) == READY[PARTNERS[kind]]
    return client


def has_been_heard(client):
    """Waits until the broker has taken what was sent: it answers PING behind it, and sent nothing before that."""
    client.send(b"\x04\x07\x04PING\0\0")
    assert client.read(7) == b"\x04\x05\x04PONG"


@pytest.mark.parametrize("kind", sorted(PARTNERS))
def test_bytes_are_those_of_libzmq(kind):
    # Breaks: the test below sends what no client sends, and shows nothing.
    own = zmq.Context.instance().socket(getattr(zmq, kind.decode()))
    try:
        if kind == b"SUB":
            own.setsockopt(zmq.SUBSCRIBE, b"test")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            own.connect(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
            server = Bytes.__new__(Bytes)
            server.socket, _ = listener.accept()
        with server:
            server.socket.settimeout(WAIT_SECONDS)
            assert server.read(10) == SIGNATURE
            server.send(OUR_SIGNATURE + MAJOR + MINOR)
            assert server.read(1) == MAJOR
            assert server.read(1) in (b"\0", b"\x01")  # Newer ones announce 3.1, and speak 3.0 with those of 3.0.
            assert server.read(52) == MECHANISM
            server.send(MECHANISM + READY[PARTNERS[kind]])
            assert server.read(len(READY[kind])) == READY[kind]
            if kind == b"SUB":
                assert server.read(7) == frame(b"\x01test")
            if kind == b"REQ":
                own.send(b"x" * 256)
                assert server.read(2 + 9 + 256) == frame(b"", 1) + frame(b"x" * 256)
    finally:
        own.close(linger=0)


def ask_as_lightq(end, admin, answer, **fields):
    """Sends a command as picojson lays it out, one field a line, and checks the answer to the byte."""
    text = json.dumps(fields, indent=2, sort_keys=True) + "\n"
    admin.send(frame(b"", 1) + frame(text.encode() + end))
    wanted = frame(b"", 1) + frame(answer.encode())
    assert admin.read(len(wanted)) == wanted


@pytest.mark.parametrize("end", [b"", b"\0"], ids=["text", "text and NUL"])
def test_lightqs_own_clients_byte_for_byte(serve, end):
    # Breaks: LightQ's programs, which were never told of this broker, read something else than LightQ sent.
    broker = serve("--data-auth", "joined")
    user = {"topic": "test", "user_id": USER, "password": PASSWORD}
    ask = functools.partial(ask_as_lightq, end)
    opened = []

    def client(port, kind):
        opened.append(as_libzmq(port, kind))
        return opened[-1]

    def joined(role, port):
        """A client's own connection for commands, which it keeps."""
        ask(client(broker.port, b"REQ"),
            f'{{"bind_uri":"tcp://127.0.0.1:{port}","cmd":"join","status":"ok","topic":"test"}}',
            cmd="join", connection_type="zmq", type=role, **user)

    admin = client(broker.port, b"REQ")
    create = {"cmd": "create_topic", "admin_user_id": ADMIN, "admin_password": broker.admin_password,
              "broker_type": "queue", **user}
    ask(admin, '{"cmd":"create_topic","description":"topic created successfully","status":"ok"}', **create)
    ask(admin, '{"cmd":"create_topic","description":"topic already exists","status":"error"}', **create)
    first = broker.port + 1  # Those of consumers, and then that of producers: the order of the first joins.
    joined("pull", first + 1)
    pull = client(first + 1, b"PULL")
    joined("pub", first + 2)
    push = client(first + 2, b"PUSH")
    joined("sub", first)
    by_message, by_command = client(first, b"SUB"), client(first, b"SUB")
    by_message.send(frame(b"\x01test"))
    by_command.send(b"\x04\x0e\x09SUBSCRIBEtest")  # As ZMTP 3.1 has it.
    for sub in by_message, by_command:
        has_been_heard(sub)

    messages = [b"1427658489112", b"", b"x" * 255, b"y" * 256, b"a", b"b", b"z" * (1 << 20), b"STOP"]
    a, b = messages.index(b"a"), messages.index(b"b")
    assert b == a + 1
    push.send(b"".join(frame(text, 1 if text == b"a" else 0) for text in messages))  # Two are parts of one.
    wanted = b"".join(map(frame, messages))
    assert pull.read(len(wanted)) == wanted
    wanted = b"".join(frame(b"test", 1) + frame(text) for text in messages)
    for sub in by_message, by_command:
        assert sub.read(len(wanted)) == wanted

    by_message.send(frame(b"\x00test"))
    by_command.send(b"\x04\x0b\x06CANCELtest")
    for sub in by_message, by_command:
        has_been_heard(sub)
    push.send(frame(b"for the puller"))
    assert pull.read(16) == frame(b"for the puller")
    for sub in by_message, by_command:
        has_been_heard(sub)

    sent, size = len(messages) + 1, sum(map(len, messages)) + len(b"for the puller")
    ask(admin, f'{{"cmd":"stats","messages_received":{sent},"messages_sent":{sent},"publishers_count":1,"queue_size":0,'
        f'"status":"ok","subscribers_count":3,"topic":"test","topic_type":"queue",'
        f'"total_bytes_read":{size + 2 * (size - len(b"for the puller"))},"total_bytes_written":{size}}}',
        cmd="stats", **user)
    ask(admin, '{"cmd":"unsub","description":"invalid_cmd","status":"error"}', cmd="unsub")
    ask(admin, '{"cmd":"stats","description":"topic not found","status":"error"}',
        cmd="stats", **{**user, "topic": "none"})
    ask(admin, '{"cmd":"join","description":"unauthorized_access","status":"error"}',
        cmd="join", connection_type="zmq", type="pub", **{**user, "password": "wrong"})
    ask(admin, "pong", cmd="ping")
    for each in opened:
        each.close()
