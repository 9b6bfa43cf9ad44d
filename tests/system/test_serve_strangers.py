"""If these tests failed, clients that nobody let in, or that went without a word, would take something of `leat serve` from
all others: its trust, its memory, its descriptors, its messages."""
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest
import zmq

from broker import PASSWORD, USER, Bytes, take, wait_for, zmtp_hello
from test_serve_admin import as_admin
from test_serve_raw import Raw, connected


def framed(*payloads):
    return b"".join(struct.pack("<I", len(payload)) + payload for payload in payloads)


def test_connection_that_is_reset_at_once_is_not_taken_for_one_of_this_machine(serve):
    # Breaks: with --data-auth joined, a client from anywhere publishes: it resets its connection, the broker cannot ask for
    # its address any more, and trusts it as it trusts 127.0.0.1, which has joined.
    broker = serve("--data-auth", "joined")
    broker.create("test")
    with Bytes(broker.port) as admin:
        command = broker.join_command("test", "pub", connection_type="socket")
        port = int(admin.ask(command)["bind_uri"].rpartition(":")[2])
        hello = json.dumps({"type": "pub"}).encode()
        for _ in range(500):
            stranger = Bytes(port, framed(hello, b"spoofed"), source="127.0.0.9")
            stranger.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stranger.close()
        joined = Raw(port, framed(hello, b"right"))
        assert json.loads(joined.read_message())["status"] == "ok" and joined.read_count() == 1
        joined.close()
        assert broker.stats("test")["messages_received"] == 1


# --- Memory and descriptors -------------------------------------------------------------------------

def test_command_that_does_not_end_has_a_clock(serve):
    # Breaks: connections that have asked once hold the beginning of a command for ever, and fill the memory.
    broker = serve("--limits-handshake-time", "1s")
    waiting = Bytes(broker.port)
    begun = [Bytes(broker.port) for _ in range(3)]
    for client in begun + [waiting]:
        assert client.ask({"cmd": "ping"}) == b"pong"
    begun[0].send(struct.pack(">I", 60_000) + b" " * 50_000)
    begun[1].send(b"\0")
    for _ in range(3):  # However slowly it goes on.
        begun[2].send(b"\0")
        time.sleep(.3)
    over_zmtp = Bytes(broker.port, zmtp_hello(b"REQ"))
    over_zmtp.send(b"\x01\x00\x02" + struct.pack(">Q", 50_000) + b" " * 40_000)
    for client in begun + [over_zmtp]:
        assert client.is_closed()
    assert "its command did not come in time" in broker.log()
    assert waiting.ask({"cmd": "ping"}) == b"pong"  # Between commands, it may wait for as long as it likes.


def test_answer_that_nobody_takes_has_a_clock(serve):
    # Breaks: clients that ask for long answers and do not read them fill the memory.
    broker = serve("--limits-handshake-time", "1s")
    for i in range(20):
        broker.create(f"{i}-" + "x" * 190)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", broker.port))
        command = json.dumps(as_admin(broker, cmd="list_topics")).encode() + b" " * 100
        wait_for(lambda: asks_without_reading(client, command, broker), "the clock")


def asks_without_reading(client, command, broker):
    client.setblocking(False)
    try:
        client.send(struct.pack(">I", len(command)) + command)
    except OSError:
        pass
    return "did not take its answer in time" in broker.log()


def test_memory_goes_back_when_many_have_gone(serve):
    # Breaks: what 2,000 connections needed once stays with the broker.
    broker = serve()
    if broker.is_sanitized():
        pytest.skip("a sanitizer keeps freed memory")
    before = broker.resident_bytes()
    clients = []
    for _ in range(700):
        clients.append(Bytes(broker.port, struct.pack(">I", 65_000) + b" " * 60_000))
    wait_for(lambda: broker.resident_bytes() > before + (30 << 20), "their commands")
    for client in clients:
        client.close()
    wait_for(lambda: broker.resident_bytes() < before + (15 << 20), "the memory")


def test_subscribers_that_stop_share_a_bound(serve):
    # Breaks: whoever may read one topic opens connections that read nothing, each of which keeps 8 MiB of its own.
    broker = serve()
    if broker.is_sanitized():
        pytest.skip("a sanitizer needs much more memory")
    broker.create("test")
    with connected(broker, "test", "pub") as producer, connected(broker, "test", "sub") as reading:
        message, count = b"x" * 450_000, 0
        stopped = []
        for _ in range(30):
            stopped.append(connected(broker, "test", "sub"))
            for _ in range(20):
                producer.send_message(message)
                assert reading.read_message() == message
            count += 20
            producer.counted(count)
        assert broker.resident_bytes() < 200 << 20
        ask = {"cmd": "stats", "topic": "test", "user_id": USER, "password": PASSWORD, "leat": 1}
        lost = [each["lost"] for each in broker.ask(ask)["connections"] if each["role"] == "sub"]
        assert sum(each > 0 for each in lost) > 10 and 0 in lost
        for client in stopped:
            client.close()


def test_descriptors_do_not_run_out_before_connections(serve):
    # Breaks: strangers take all descriptors; the broker's owner cannot connect, and no topic can be opened.
    broker = serve()
    broker.create("test")
    limit = len(os.listdir(f"/proc/{broker.process.pid}/fd")) + 250
    resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
    strangers = [Bytes(broker.port) for _ in range(limit)]
    for client in strangers:
        client.send_framed({"cmd": "ping"})
    wait_for(lambda: "the limit of open files" in broker.log(), "the limit")
    owner = Bytes(broker.state / "lightq.sock")
    assert owner.ask({"cmd": "ping"}) == b"pong"
    answer = owner.ask(broker.join_command("test", "pub", connection_type="socket", leat=1))
    assert answer["status"] == "ok", answer  # Its log and its port were opened.
    assert "cannot accept" not in broker.log()
    for client in strangers:
        client.close()
    wait_for(lambda: connected(broker, "test", "pub"), "their places")


# --- Clients that go, or wait -------------------------------------------------------------------------

PING = b"\x04\x07\x04PING"


def read_frame(client):
    flags, size = client.read(2)
    if flags & 2:
        size = struct.unpack(">Q", bytes([size]) + client.read(7))[0]
    return client.read(size)


def frame(body, flags=0):
    assert len(body) < 1 << 16
    return (bytes([flags, len(body)]) if len(body) < 256 else
            bytes([flags | 2]) + struct.pack(">Q", len(body))) + body


def zmtp(broker, topic, role, kind):
    """A connection that has joined, after the handshake."""
    port = int(broker.join(topic, role).rpartition(":")[2])
    client = Bytes(port, zmtp_hello(kind))
    client.read(64)
    assert read_frame(client).startswith(b"\x05READY")
    return client


def test_client_that_said_how_long_it_may_be_silent_is_cut_off_then(serve):
    # Breaks: what a puller that vanished was sent stays with it, though it has told when it is dead.
    broker = serve("--data-auth", "joined")
    broker.create("test")
    silent, alive, plain = (zmtp(broker, "test", "pull", b"PULL") for _ in range(3))
    for client in silent, alive:
        client.send(PING + struct.pack(">H", 5))  # 500 ms
        assert read_frame(client) == b"\x04PONG"
    closed = threading.Thread(target=silent.is_closed, daemon=True)
    closed.start()
    for _ in range(15):
        time.sleep(.1)
        alive.send(PING + struct.pack(">H", 5))
        assert read_frame(alive) == b"\x04PONG"
    closed.join(20)
    assert not closed.is_alive() and "sent nothing for as long as it said" in broker.log()
    plain.send(PING + b"\0\0")
    assert read_frame(plain) == b"\x04PONG"


@pytest.mark.parametrize("timeout_ms, pause_s", [(600, .2), (2500, 0)], ids=["pinged", "fresh"])
def test_producer_with_heartbeats_may_wait(serve, leat, timeout_ms, pause_s):
    # Breaks: libzmq takes a broker whose topic is full for dead, connects again, and its messages come in another order.
    broker = serve()
    leat("topic", "create", "test", "--capacity", "256KiB", check=True)
    grant = as_admin(broker, cmd="grant", topic="test", user_id=USER, password=PASSWORD,
                     right="read_write")
    assert broker.ask(grant)["status"] == "ok"
    pull = broker.join("test", "pull")
    push, watch = broker.connect(zmq.PUSH, broker.join("test", "pub"), heartbeat_ivl=50,
                                 heartbeat_timeout=timeout_ms)
    watch.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    # A broker that has seen a PING answers sooner while it reads nothing.
    time.sleep(pause_s)
    for number in range(600):
        push.send(b"%06d" % number + b"x" * (1000 if number < 400 else 20))
        time.sleep(0 if number < 400 else .005)
    events = watch.poll(timeout_ms + 1700)
    assert zmq.EVENT_DISCONNECTED not in events
    puller, _ = broker.connect(zmq.PULL, pull)
    assert [int(each[:6]) for each in take(puller, 600)] == list(range(600))


def test_puller_whose_hello_is_late_loses_nothing(serve):
    # Breaks: with --data-auth joined, a puller on a slow machine is taken for one of LightQ, which says nothing; what it is
    # sent until its hello comes counts as delivered.
    broker = serve("--data-auth", "joined")
    broker.create("test")
    producer = connected(broker, "test", "pub")
    connected(broker, "test", "pull").close()
    producer.send_message(*[b"%d" % i for i in range(50)])
    producer.counted(50)
    with Bytes(broker.port) as admin:
        answer = admin.ask(broker.join_command("test", "pull", connection_type="socket", leat=1))
        port = int(answer["bind_uri"].rpartition(":")[2])
        late = Raw(port)
        time.sleep(.3)
        hello = {"type": "pull", "token": answer["token"], "acknowledge": True}
        assert late.hello(**hello) == {"status": "ok", "topic": "test"}
        assert late.read_message() == b"0"
        late.close()
        broker.stats_become("test", queue_size=50)
        # Beside one of LightQ's own, from the same address.
        admin.ask(broker.join_command("test", "pull", connection_type="socket"))
        with Raw(port) as silent:
            assert silent.read_message() in [b"%d" % i for i in range(50)]


def test_subscriptions_are_counted_by_their_prefix(serve):
    # Breaks: who cancels what it never subscribed to gets nothing any more; who subscribes to something long is cut off,
    # connects again, and is cut off again.
    broker = serve("--data-auth", "joined")
    broker.create("test")
    producer = connected(broker, "test", "pub")

    def gets(client, text):
        client.send(PING + b"\0\0")  # Behind the subscriptions.
        assert read_frame(client) == b"\x04PONG"
        producer.send_message(text)
        return read_frame(client) == b"test" and read_frame(client) == text
    client = zmtp(broker, "test", "sub", b"SUB")
    client.send(frame(b"\1t"))
    assert gets(client, b"one")
    client.send(frame(b"\0") + frame(b"\0test"))
    assert gets(client, b"two")
    client.send(frame(b"\1" + b"long" * 5000) + frame(b"\0" + b"long" * 5000))
    assert gets(client, b"three")
    client.send(frame(b"\1te") + frame(b"\0t"))
    assert gets(client, b"four")
    client.send(frame(b"\0te"))
    client.send(PING + b"\0\0")
    assert read_frame(client) == b"\x04PONG"
    producer.send_message(b"five")
    producer.counted(5)
    client.send(PING + b"\0\0")
    assert read_frame(client) == b"\x04PONG"  # And not the message.


def test_new_passwords_are_those_that_zeromq_can_send(serve):
    # Breaks: a topic is made whose user no ZeroMQ client can ever log in.
    broker = serve()
    long = "p" * 256
    answer = broker.ask(as_admin(broker, cmd="create_topic", topic="test", user_id=USER, password=long))
    assert answer["status"] == "error" and "at most 255 bytes" in answer["description"]
    broker.create("test", password=long[:255])
    for fields in ({"cmd": "grant", "user_id": "other", "password": long, "right": "read"},
                   {"cmd": "change_password", "new_password": long}):
        answer = broker.ask(as_admin(broker, topic="test", **fields))
        assert answer["status"] == "error" and "at most 255 bytes" in answer["description"]
    assert broker.join("test", "pull", long[:255])


# --- Guesses ------------------------------------------------------------------------------------------

def test_guesses_do_not_keep_out_a_first_login(serve):
    # Breaks: who guesses without end keeps out everybody else of the machine who is not known yet, the administrator as well.
    broker = serve()
    broker.create("test")
    broker.stop()
    broker.start()  # Now nobody is known.
    ends = threading.Event()
    checked = []

    def guess(guesser):
        with Bytes(broker.port, source=f"127.0.{guesser}.1") as client:
            number = 0
            while not ends.is_set():
                number += 1
                answer = client.ask(broker.join_command("test", "pull", f"{guesser} {number}"))
                if answer["description"] == "unauthorized_access":
                    checked.append(time.monotonic())
    guessers = [threading.Thread(target=guess, args=[i], daemon=True) for i in range(6)]
    begun = time.monotonic()
    for each in guessers:
        each.start()
    time.sleep(1)
    for place in broker.port, broker.state / "lightq.sock":
        for _ in range(3):
            with Bytes(place) as owner:
                assert owner.ask(as_admin(broker, cmd="list_topics"))["status"] == "ok"
    with Bytes(broker.port) as user:  # Whose password is guessed at.
        assert user.ask(broker.join_command("test", "pull"))["status"] == "ok"
    ends.set()
    for each in guessers:
        each.join(20)
    assert 5 <= len(checked) <= 5 + 6 + 5 * (max(checked) - begun)


# --- Disks --------------------------------------------------------------------------------------------

def test_right_can_be_taken_away_on_a_full_disk(serve, as_root):
    # Breaks: who may write to a durable topic fills the disk, and the administrator cannot take the right away any more.
    broker = serve()
    broker.stop()
    broker.data.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", broker.data], check=True)
    try:
        broker.options["--state-dir"] = broker.state = broker.data / "+broker"
        broker.start()
        broker.create("test", broker_type="file")
        grant = {"topic": "test", "user_id": "other", "password": "pw", "right": "write"}
        assert broker.ask(as_admin(broker, cmd="grant", **grant))["status"] == "ok"
        login = {"user_id": "other", "password": "pw"}
        producer = connected(broker, "test", "pub", login)
        producer.socket.settimeout(3)
        with pytest.raises(socket.timeout):
            while True:
                producer.socket.sendall(framed(b"x" * 60_000) * 10)
        wait_for(lambda: "topic test: the disk is full; its producers wait" in broker.log(), "the log")
        change = {"topic": "test", "user_id": "other", "new_password": "new"}
        assert broker.ask(as_admin(broker, cmd="change_password", **change))["status"] == "ok"
        answer = broker.ask(as_admin(broker, cmd="revoke", topic="test", user_id="other"))
        assert answer["status"] == "ok", answer
        assert producer.is_closed()
        broker.stop(signal.SIGKILL)
        broker.start()
        topics = broker.ask(as_admin(broker, cmd="list_topics"))["topics"]
        assert all("rights" not in each for each in topics)
        broker.stop(signal.SIGKILL)
    finally:
        subprocess.run(["umount", "-l", broker.data], check=True)


def test_right_that_cannot_be_stored_ends_all_the_same(serve):
    # Breaks: the administrator takes a right away, the store cannot be written, and the user goes on.
    broker = serve()
    broker.create("test")
    grant = {"topic": "test", "user_id": "other", "password": "pw", "right": "write"}
    assert broker.ask(as_admin(broker, cmd="grant", **grant))["status"] == "ok"
    login = {"user_id": "other", "password": "pw"}
    producer = connected(broker, "test", "pub", login)
    store = broker.state / "broker.db"
    store.rename(f"{store}.away")
    answer = broker.ask(as_admin(broker, cmd="revoke", topic="test", user_id="other"))
    assert answer["status"] == "error" and "until the next start only" in answer["description"]
    assert producer.is_closed()
    answer = broker.ask({**broker.join_command("test", "pub"), **login})
    assert answer["status"] == "error"
    wait_for(lambda: "unless it is put back" in broker.log(), "the log")
    Path(f"{store}.away").rename(store)
    wait_for(lambda: f"store in {broker.state} is there again" in broker.log(), "the log")
    assert broker.ask(as_admin(broker, cmd="revoke", topic="test", user_id="other"))["status"] == "ok"


def test_log_names_the_directory_that_is_there_again(serve):
    # Breaks: the administrator puts the data directory back and looks for it in the log.
    broker = serve()
    broker.stop()
    broker.data.mkdir(exist_ok=True)
    broker.start()
    away = broker.data.with_name("away")
    broker.data.rename(away)
    wait_for(lambda: f"{broker.data} was removed or replaced: durable topics" in broker.log(), "the log")
    away.rename(broker.data)
    wait_for(lambda: f"{broker.data} is there again" in broker.log(), "the log")
    assert str(broker.state) not in broker.log().split("was removed or replaced")[1]
