"""If these tests failed, programs written for LightQ, or with pyzmq from its description, would not work with
`leat serve`, would lose or repeat messages, or could be read and written by those without the password."""
import json
import random
import struct
import threading
from contextlib import suppress

import pytest
import zmq

from broker import (ADMIN, PASSWORD, PROBE, REFUSED, USER, Bytes, Watch, subscribed, take,
                    take_pairs, wait_for, zmtp_hello)

COUNTERS = {"queue_size", "messages_sent", "messages_received", "publishers_count",
            "subscribers_count", "total_bytes_written", "total_bytes_read"}


@pytest.fixture
def open_broker(serve):
    """A broker that takes data connections without credentials, as LightQ's clients make them."""
    broker = serve("--data-auth", "joined")
    broker.plain = False
    return broker


def error(command, description):
    return {"cmd": command, "status": "error", "description": description}


def port_of(uri):
    assert uri.startswith("tcp://127.0.0.1:"), uri
    return int(uri.rpartition(":")[2])


def works(broker, topic, message=b"still here"):
    """Checks that a new client can join, and that a message passes through the topic."""
    push, pull = broker.producer(topic), broker.puller(topic)
    push.send(message)
    assert take(pull, 1) == [message]
    push.close()
    pull.close()
    assert broker.process.poll() is None


# --- L1: the administration as LightQ's clients know it -------------------------------------------

def test_first_answers_of_a_fresh_broker_are_those_of_lightq(serve):
    # Breaks: existing clients parse these answers, and firewalls name these ports.
    broker = serve("--data-auth", "joined")
    credentials = {"topic": "test", "user_id": "test_admin", "password": "T0p$3cr31"}
    assert broker.ask({"cmd": "create_topic", "admin_user_id": "lightq_admin", **credentials,
                       "admin_password": broker.admin_password, "broker_type": "queue"}) == {
        "cmd": "create_topic", "description": "topic created successfully", "status": "ok"}
    assert broker.ask({"cmd": "join", "connection_type": "zmq", "type": "pull", **credentials}) == {
        "bind_uri": f"tcp://127.0.0.1:{broker.port + 2}", "cmd": "join", "status": "ok",
        "topic": "test"}
    assert broker.ask({"cmd": "join", "connection_type": "zmq", "type": "pub", **credentials}) == {
        "bind_uri": f"tcp://127.0.0.1:{broker.port + 3}", "cmd": "join", "status": "ok",
        "topic": "test"}
    stats = broker.ask({"cmd": "stats", **credentials})
    stats.pop("connections", None)  # An addition of ours.
    assert stats == {"cmd": "stats", "status": "ok", "topic": "test", "topic_type": "queue",
                     **dict.fromkeys(COUNTERS, 0)}
    assert broker.join("test", "sub") == f"tcp://127.0.0.1:{broker.port + 1}"


def test_ports_follow_the_order_of_first_joins(serve):
    # Breaks: a second client of a topic would be sent to a port where the first one is not.
    broker = serve()
    broker.create("one")
    broker.create("two")
    first = broker.port
    assert port_of(broker.join("one", "pub")) == first + 1
    assert port_of(broker.join("two", "sub")) == first + 2
    assert port_of(broker.join("one", "pull")) == first + 5
    assert port_of(broker.join("two", "pull")) == first + 3
    assert port_of(broker.join("two", "pub")) == first + 6
    other = broker.admin()
    again = [broker.ask(broker.join_command("one", role), other)["bind_uri"]
             for role in ("pub", "sub", "pull")]
    assert [port_of(uri) for uri in again] == [first + 1, first + 4, first + 5]


def test_unmodified_client_needs_no_credentials_on_data_ports(open_broker):
    # Breaks: LightQ's programs, which keep their REQ connection and send no password with data, get nothing.
    open_broker.create("test")
    kept = open_broker.admin()
    uri = {role: open_broker.ask(open_broker.join_command("test", role), kept)["bind_uri"]
           for role in ("pull", "sub", "pub")}
    pull, sub, push = (open_broker.socket(kind) for kind in (zmq.PULL, zmq.SUB, zmq.PUSH))
    pull.connect(uri["pull"])
    sub.connect(uri["sub"])
    sub.setsockopt(zmq.SUBSCRIBE, b"test")
    push.connect(uri["pub"])
    subscribed(push, sub)
    for i in range(1000):
        push.send(b"%d" % i)
    assert take(pull, 1000) == [b"%d" % i for i in range(1000)]
    assert take_pairs(sub, 1000) == [(b"test", b"%d" % i) for i in range(1000)]


def test_join_of_one_topic_opens_no_other(open_broker):
    # Breaks: whoever knows the password of one topic reads and writes all the others.
    open_broker.create("test")
    open_broker.create("other")
    test, other = open_broker.join("test", "pull"), open_broker.join("other", "pub")
    open_broker.stop()
    open_broker.start()  # Nobody has joined now, and the ports are the same.
    assert open_broker.join("other", "pub") == other
    _, watch = open_broker.connect(zmq.PULL, test, password=None)
    assert watch.until(REFUSED | {zmq.EVENT_HANDSHAKE_SUCCEEDED}) != zmq.EVENT_HANDSHAKE_SUCCEEDED
    _, watch = open_broker.connect(zmq.PUSH, other, password=None)
    watch.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)


def test_leaving_ends_what_a_join_allowed(open_broker):
    # Breaks: a machine that once had a client could read for ever, without the password.
    open_broker.create("test")
    kept = open_broker.admin()
    uri = open_broker.ask(open_broker.join_command("test", "pull"), kept)["bind_uri"]
    kept.close(linger=0)

    def refused():
        data, watch = open_broker.connect(zmq.PULL, uri, password=None)
        event = watch.until(REFUSED | {zmq.EVENT_HANDSHAKE_SUCCEEDED})
        data.disable_monitor()
        data.close()
        return event != zmq.EVENT_HANDSHAKE_SUCCEEDED
    wait_for(refused, "a refusal")


# --- L2: errors, and which fields count -----------------------------------------------------------

def test_every_error_has_its_text(serve):
    # Breaks: clients compare these texts; a wrong one looks to them like another error.
    broker = serve()
    broker.create("test")
    admin = {"cmd": "create_topic", "admin_user_id": ADMIN, "admin_password": broker.admin_password,
             "user_id": USER, "password": PASSWORD}
    assert broker.ask({**admin, "topic": "test"}) == error("create_topic", "topic already exists")
    assert broker.ask({**admin, "topic": "new", "admin_password": "wrong"}) == error(
        "create_topic", "unauthorized_access")
    assert broker.ask(broker.join_command("none", "pull")) == error("join", "topic not found")
    assert broker.ask(broker.join_command("test", "pull", "wrong")) == error(
        "join", "unauthorized_access")
    assert broker.ask({"cmd": "frobnicate"}) == error("frobnicate", "invalid_cmd")
    assert broker.ask({"cmd": "ping"}) == b"pong"
    broker.stop()
    broker.start()  # With all attempts of this address.
    stats = {"cmd": "stats", "user_id": USER, "password": PASSWORD}
    assert broker.ask({**stats, "topic": "none"}) == error("stats", "topic not found")
    assert broker.ask({**stats, "topic": "test", "user_id": "x"}) == error(
        "stats", "unauthorized_access")
    assert broker.ask({**stats, "topic": "test"})["status"] == "ok"


def test_names_of_topics_are_not_told_to_those_who_may_not_create_them(serve):
    # Breaks: anybody could find out by create_topic which topics there are (in LightQ this is so).
    broker = serve()
    broker.create("test")
    wrong = {"cmd": "create_topic", "admin_user_id": ADMIN, "admin_password": "T0p$3cr31"}
    for topic in "test", "none":
        assert broker.ask({**wrong, "topic": topic}) == error("create_topic", "unauthorized_access")
    assert broker.ask({"cmd": "create_topic", "topic": "test"}) == error(
        "create_topic", "unauthorized_access")


def test_fields_follow_the_rules_of_lightq(serve):
    # Breaks: clients that send more, fewer or other fields than they should, and worked until now.
    broker = serve()
    broker.create("test", broker_type="whatever", extra={"unknown": [1]})
    assert broker.stats("test")["topic_type"] == "queue"
    broker.create("plain", broker_type="direct")
    assert broker.stats("plain")["topic_type"] == "direct"
    pull = broker.join("test", "pull")
    assert broker.join("test", "") == broker.join("test", "anything") == pull
    assert broker.join("test", "pull", connection_type="whatever", more=1) == pull
    without = broker.join_command("test", "pull")
    del without["type"], without["connection_type"]
    assert broker.ask(without)["bind_uri"] == pull
    assert broker.ask({**without, "type": 7})["bind_uri"] == pull
    # A field that is no string counts as empty.
    assert broker.ask({**without, "password": 7}) == error("join", "unauthorized_access")
    broker.create("free", password="", user_id="")
    assert broker.ask({"cmd": "join", "topic": "free"})["status"] == "ok"


@pytest.mark.parametrize("after", [b"\0", b"\n", b" \0", b"garbage", b'{"cmd":"stats"}'])
def test_what_follows_the_object_is_ignored(serve, after):
    # Breaks: C clients that send the NUL of their string, which LightQ takes.
    broker = serve()
    assert broker.ask(b'{"cmd":"ping"}' + after) == b"pong"


# --- L3: what nobody should send ------------------------------------------------------------------

ODD = {"empty": b"", "object": b"{}", "array": b"[]", "number": b'{"cmd":1}', "null": b"null",
       "nothing in it": b'{"cmd":""}', "a bare word": b"ping", "half": b'{"cmd":"pi',
       "not UTF-8": b'{"cmd":"\xff\xfe"}', "a surrogate": b'{"cmd":"\\ud800"}',
       "NUL": b"\0", "deep": b"[" * 3000, "deep objects": b'{"cmd":' * 500,
       "4097 bytes": b'{"cmd":"ping","x":"' + b"x" * (4097 - 21) + b'"}',
       "4097 bytes of text": b"x" * 4097, "large number": b'{"cmd":' + b"9" * 1000 + b"}",
       "10 MiB": b"x" * (10 << 20), "10 MiB of JSON": b'{"cmd":"' + b"x" * (10 << 20) + b'"}'}


def answer_or_close(broker, *parts):
    """Sends a request of some parts; returns the answer, or None if the broker closed."""
    request = broker.socket(zmq.REQ)
    watch = Watch(request)
    request.connect(f"tcp://127.0.0.1:{broker.port}")
    request.send_multipart(parts)
    wait_for(lambda: request.poll(10) or zmq.EVENT_DISCONNECTED in watch.poll(),
             f"an answer to {parts[0][:30]} or a close")
    answer = request.recv() if request.poll(0) else None
    request.disable_monitor()
    request.close(linger=0)
    return answer


def test_odd_requests_are_answered_or_closed_and_others_served(serve):
    # Breaks: one packet from anybody stops the whole broker (in LightQ each of the first four does).
    broker = serve()
    broker.create("test")
    for name, request in ODD.items():
        answer = answer_or_close(broker, request)
        if answer is not None and not (name.startswith("4097") and answer == b"pong"):
            answer = json.loads(answer)
            assert answer["status"] == "error" and "invalid_cmd" in answer["description"], name
        assert broker.ask({"cmd": "ping"}) == b"pong", name
    assert answer_or_close(broker, b"{}") is not None
    answer_or_close(broker, b'{"cmd":"ping"}', b"more")
    answer_or_close(broker, b"", b"", b'{"cmd":"ping"}')
    answer_or_close(broker, *[b"part"] * 1000)
    works(broker, "test")
    assert broker.resident_bytes() < 300 << 20


def garbage():
    seed = random.randrange(1 << 32)
    print("seed", seed)
    source = random.Random(seed)
    hello = zmtp_hello(b"REQ")
    yield from (source.randbytes(size) for size in (1, 11, 64, 1000, 100_000))
    yield from (b"\xff" + source.randbytes(size) for size in (9, 63, 5000))
    yield from (b"\0" + source.randbytes(size) for size in (2, 3, 5000))
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00" + bytes(500)
    yield from (hello[:size] for size in (1, 10, 11, 12, 40, 63, 64, 66, len(hello) - 1))
    yield hello[:32] + b"CURVE".ljust(20) + hello[52:]
    yield hello[:64] + b"\x06" + b"\xff" * 8  # A command of 2^64 - 1 bytes.
    yield hello[:64] + b"\x04\x06\x05READY\x04"  # A property that ends too soon.
    yield zmtp_hello(b"REQ", b"PLAIN")[:64] + b"\x04\x08\x05HELLO\xff\xff"
    yield zmtp_hello(b"x" * 200) + bytes(1000)


def test_garbage_on_any_port_disturbs_nobody(serve):
    # Breaks: a port scanner, or a client of something else, stops or fills the broker.
    broker = serve("--data-auth", "open")
    broker.create("test")
    push, pull = broker.producer("test"), broker.puller("test")
    ports = [broker.port, *(port_of(broker.join("test", role)) for role in ("pub", "sub", "pull"))]
    opened = [Bytes(port, data) for data in garbage() for port in ports]  # All open at once.
    push.send(b"among them")
    assert take(pull, 1) == [b"among them"]
    assert broker.ask({"cmd": "ping"}) == b"pong"
    for connection in opened:
        connection.close()
    works(broker, "test")
    assert broker.stats("test")["messages_received"] == 2
    assert broker.resident_bytes() < 300 << 20


@pytest.mark.parametrize("after", [
    b"\x02" + b"\x7f" + b"\xff" * 7 + b"x", b"\x02" + b"\xff" * 8 + b"x",
    b"\x02" + (1 << 32).to_bytes(8, "big") + b"x", b"\xf8\x01x", b"\x05\x01x",
    b"\x04\x00", b"\x04\x06\x05ERROR"], ids=lambda data: data.hex(" "))
def test_impossible_frames_close_the_connection_that_sent_them(serve, after):
    # Breaks: a length that a peer claims makes the broker take memory, or wait for ever.
    broker = serve("--data-auth", "open")
    broker.create("test")
    push = broker.producer("test")
    with Bytes(broker.port, zmtp_hello(b"REQ") + after) as admin, \
            Bytes(port_of(broker.join("test", "pub")), zmtp_hello(b"PUSH") + after) as data:
        assert admin.is_closed() and data.is_closed()
    push.send(b"from the other")
    assert take(broker.puller("test"), 1) == [b"from the other"]
    assert broker.resident_bytes() < 300 << 20


def test_connection_may_be_as_slow_as_a_byte_at_a_time(serve):
    # Breaks: clients behind slow or odd networks, where a frame comes in pieces.
    broker = serve()
    ping = b'{"cmd":"ping"}'
    with Bytes(broker.port) as zmtp, Bytes(broker.port) as framed:
        for byte in zmtp_hello(b"REQ") + b"\x01\x00" + b"\x00" + bytes([len(ping)]) + ping:
            zmtp.send(bytes([byte]))
        for byte in b"\0\0\0" + bytes([len(ping)]) + ping:
            framed.send(bytes([byte]))
        assert zmtp.read(12)[0] == 0xff and zmtp.read(52)[:4] == b"NULL"
        assert zmtp.read(1) == b"\x04" and zmtp.read(zmtp.read(1)[0]).startswith(b"\x05READY")
        assert zmtp.read(8) == b"\x01\x00\x00\x04pong"
        assert framed.read_framed() == b"pong"


def test_half_open_connections_end(serve, tmp_path):
    # Breaks: connections that never say anything fill the broker's table.
    (tmp_path / "leat.toml").write_text('[limits]\nhandshake_time = "200ms"\n')
    broker = serve("--config", tmp_path / "leat.toml")
    with Bytes(broker.port, b"\xff") as begun, Bytes(broker.port) as silent:
        assert begun.is_closed() and silent.is_closed()


# --- JSON behind a length, on the same port -------------------------------------------------------

def test_json_behind_its_length_says_the_same(serve):
    # Breaks: programs without ZeroMQ cannot create or join.
    broker = serve()
    broker.create("test")
    with Bytes(broker.port) as client:
        assert client.ask({"cmd": "ping"}) == b"pong"
        assert client.ask({"cmd": "none"}) == error("none", "invalid_cmd")
        answer = client.ask(broker.join_command("test", "pull"))
        assert answer == {"cmd": "join", "status": "ok", "topic": "test",
                          "bind_uri": f"tcp://127.0.0.1:{broker.port + 2}"}
        assert broker.join("test", "pull") == answer["bind_uri"]
        for topic in "one", "two", "three":  # Several at once are answered in order.
            client.send_framed({"cmd": topic})
        assert [client.read_framed()["cmd"] for _ in range(3)] == ["one", "two", "three"]
        assert client.ask(b"{}")["description"] == "invalid_cmd"
        assert client.ask(b'{"cmd":"ping"}\0') == b"pong"


def test_lengths_that_nobody_needs_are_refused(serve):
    # Breaks: 16 MiB of memory for each connection that claims them.
    broker = serve()
    opened = [Bytes(broker.port, b"\0\xff\xff\xff" + b"x" * 70_000) for _ in range(50)]
    for connection in opened:
        assert connection.is_closed()
        connection.close()
    with Bytes(broker.port, struct.pack(">I", 70_000)) as client:  # Who sends it is told why.
        assert "the limit is 65536" in client.read_framed()["description"]
    with Bytes(broker.port) as client:
        client.send_framed(b"")  # Answered or closed; and the next one is served.
    with Bytes(broker.port) as client:
        assert client.ask({"cmd": "ping"}) == b"pong"
    assert broker.resident_bytes() < 100 << 20


# --- L4: data ports have passwords ----------------------------------------------------------------

@pytest.mark.parametrize("who", [{"password": None}, {"password": "wrong"}, {"user": "wrong"},
                                 {"password": "other's password", "user": "other"},
                                 {"password": " "}], ids=str)
def test_data_port_is_closed_to_those_without_the_password(serve, who):
    # Breaks: whoever reaches the port reads and writes every message (in LightQ this is so).
    broker = serve()
    broker.create("test")
    broker.create("others", user_id="other", password="other's password")
    push, pull = broker.producer("test"), broker.puller("test")
    sub = broker.subscriber("test")
    subscribed(push, sub)
    before = broker.stats("test")["messages_received"]
    strangers = [broker.connect(kind, broker.join("test", role), subscribe=topics, **who)
                 for kind, role, topics in ((zmq.PUSH, "pub", None), (zmq.PULL, "pull", None),
                                            (zmq.SUB, "sub", b""))]
    with suppress(zmq.Again):  # It may have been refused already.
        strangers[0][0].send(b"forged", zmq.NOBLOCK)
    for _, watch in strangers:
        event = watch.until(REFUSED | {zmq.EVENT_HANDSHAKE_SUCCEEDED})
        assert event != zmq.EVENT_HANDSHAKE_SUCCEEDED
    for i in range(100):
        push.send(b"%d" % i)
    assert take(pull, 100) == [b"%d" % i for i in range(100)]
    assert take_pairs(sub, 100) == [(b"test", b"%d" % i) for i in range(100)]
    assert broker.stats("test")["messages_received"] == before + 100
    assert not strangers[1][0].poll(0) and not strangers[2][0].poll(0)
    for _, watch in strangers:
        assert zmq.EVENT_HANDSHAKE_SUCCEEDED not in watch.poll()


def test_client_is_told_that_its_password_is_wrong(serve):
    # Breaks: a client with a wrong password sees only a connection that comes and goes.
    broker = serve()
    broker.create("test")
    _, watch = broker.connect(zmq.PUSH, broker.join("test", "pub"), password="wrong")
    watch.until(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
    # One without a password learns that as it would from a server of libzmq: the mechanism is another one.
    _, watch = broker.connect(zmq.PULL, broker.join("test", "pull"), password=None)
    watch.until({zmq.EVENT_HANDSHAKE_FAILED_AUTH, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL})


def test_open_data_ports_take_everybody(serve):
    # Breaks: networks that rely on LightQ's having no passwords on data ports.
    broker = serve("--data-auth", "open")
    broker.create("test")
    push, pull = broker.producer("test", password=None), broker.puller("test")
    push.send(b"hello")
    assert take(pull, 1) == [b"hello"]


# --- L5, L6: who gets what ------------------------------------------------------------------------

def send_all(push, prefix, count):
    for i in range(count):
        push.send(b"%d %d" % (prefix, i))


def test_pullers_share_and_each_subscriber_gets_all(serve):
    # Breaks: work is done twice or never, or one worker does it all.
    broker = serve()
    broker.create("test")
    producers, each = [broker.producer("test") for _ in range(3)], 10_000
    wanted = [b"%d %d" % (number, i) for number in range(3) for i in range(each)]
    pulls = [broker.puller("test") for _ in range(3)]
    subs = [broker.subscriber("test") for _ in range(2)]
    subscribed(producers[0], *subs)
    broker.stats_become("test", publishers_count=3, subscribers_count=5)
    threads = [threading.Thread(target=send_all, args=(push, number, each))
               for number, push in enumerate(producers)]
    for thread in threads:
        thread.start()
    pulled, pairs = {pull: [] for pull in pulls}, {sub: [] for sub in subs}
    poller = zmq.Poller()
    for socket in [*pulls, *subs]:
        poller.register(socket, zmq.POLLIN)

    def done():
        for socket, _ in poller.poll(100):
            parts = socket.recv_multipart()
            if parts[-1] != PROBE:
                (pairs if socket in pairs else pulled)[socket].append(tuple(parts))
        return (sum(map(len, pulled.values())) >= len(wanted) and
                all(len(got) >= len(wanted) for got in pairs.values()))
    while not done():
        assert broker.process.poll() is None
        if not poller.poll(10_000):
            break
    for thread in threads:
        thread.join()
    assert sorted(part for got in pulled.values() for part, in got) == sorted(wanted)
    for got in pulled.values():
        assert len(got) == pytest.approx(len(wanted) / 3, rel=0.1)
    for got in pairs.values():
        assert {topic for topic, _ in got} == {b"test"}
        assert sorted(message for _, message in got) == sorted(wanted)
        for number in range(3):  # In order for each producer.
            mine = [message for _, message in got if message.startswith(b"%d " % number)]
            assert mine == [b"%d %d" % (number, i) for i in range(each)]


def test_messages_wait_for_the_first_consumer(serve):
    # Breaks: what is sent before the first consumer joins is lost, or stats tell wrong numbers.
    broker = serve()
    broker.create("test")
    push = broker.producer("test")
    for i in range(1000):
        push.send(b"%d" % i)
    broker.stats_become("test", messages_received=1000, queue_size=1000, messages_sent=0,
                        publishers_count=1, subscribers_count=0)
    pull = broker.puller("test")
    assert take(pull, 1000) == [b"%d" % i for i in range(1000)]
    broker.stats_become("test", messages_received=1000, queue_size=0, messages_sent=1000,
                        publishers_count=1, subscribers_count=1)
    pull.close()
    broker.stats_become("test", subscribers_count=0)
    push.send(b"later")  # And for one that left.
    broker.stats_become("test", queue_size=1, messages_received=1001)
    assert take(broker.puller("test"), 1) == [b"later"]


def test_nothing_waits_for_pullers_that_never_were(serve):
    # Breaks: a topic that is only subscribed to fills up, and its producers stop.
    broker = serve()
    broker.create("test")
    push, sub = broker.producer("test"), broker.subscriber("test")
    subscribed(push, sub)
    send_all(push, 1, 1000)
    take_pairs(sub, 1000)
    assert broker.stats("test")["queue_size"] == 0
    pull = broker.puller("test")
    push.send(b"from now on")
    assert take(pull, 1) == [b"from now on"]
    assert take_pairs(sub, 1) == [(b"test", b"from now on")]


def test_killed_puller_leaves_the_others_what_it_did_not_get(serve):
    # Breaks: one worker that hangs and dies takes thousands of jobs with it.
    broker = serve()
    broker.create("test")
    push = broker.producer("test")
    stalled = broker.puller("test", rcvhwm=1, rcvbuf=8192)
    count, size = 5000, 4096
    for i in range(count):
        push.send(b"%d" % i + b" " * size)
    seen = []

    def settled():
        stats = broker.stats("test")
        seen.append((stats["messages_received"], stats["queue_size"]))
        return seen[-1][0] == count and len(seen) > 20 and len(set(seen[-20:])) == 1
    wait_for(settled, "that the kernel is full")
    assert (held := seen[-1][1]) > 0, "the kernel took everything: the test needs more messages"
    stalled.close(linger=0)
    broker.stats_become("test", subscribers_count=0)
    pull, at_a_time = broker.puller("test"), 64
    got = [int(message) for message in take(pull, held - at_a_time)]
    while got[-1] != count - 1:
        got += map(int, take(pull, 1))
    assert sorted(got) == list(range(count - len(got), count))  # Requeued and new ones take turns.
    broker.stats_become("test", queue_size=0, messages_sent=count)


def test_requeued_messages_count_as_waiting(serve):
    # Breaks: statistics say that nothing waits while messages do.
    broker = serve()
    broker.create("test")
    push, stalled = broker.producer("test"), broker.puller("test", rcvhwm=1, rcvbuf=8192)
    for i in range(5000):
        push.send(b"%d" % i + b" " * 4096)
    broker.stats_become("test", messages_received=5000)
    stalled.close(linger=0)
    broker.stats_become("test", subscribers_count=0)
    waiting = broker.stats("test")["queue_size"]
    pull = broker.puller("test")
    got = [int(message) for message in take(pull, waiting)]
    assert sorted(got) == list(range(5000 - waiting, 5000))  # Requeued and new ones take turns.


def test_each_size_arrives_as_it_was(serve):
    # Breaks: messages at the borders of ZMTP's and the log's lengths are cut or lost.
    broker = serve()
    broker.create("test")
    push, pull, sub = broker.producer("test"), broker.puller("test"), broker.subscriber("test")
    subscribed(push, sub)
    messages = [random.Random(size).randbytes(size)
                for size in (0, 1, 255, 256, 0, 64 << 10, 1 << 20, 3, 0)]
    for message in messages:
        push.send(message)
    assert take(pull, len(messages)) == messages
    assert take_pairs(sub, len(messages)) == [(b"test", message) for message in messages]
    push.send_multipart([b"each part", b"", b"is a message"])
    assert take(pull, 3) == [b"each part", b"", b"is a message"]


def test_message_over_the_limit_ends_only_its_producer(serve):
    # Breaks: one producer with a large file stops the others, or fills the memory.
    broker = serve()
    broker.create("test")
    large, watch = broker.connect(zmq.PUSH, broker.join("test", "pub"))
    watch.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    small, quiet = broker.connect(zmq.PUSH, broker.join("test", "pub"))
    quiet.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    pull = broker.puller("test")
    large.send(b"x" * ((1 << 20) + 1))
    watch.until(zmq.EVENT_DISCONNECTED)
    small.send(b"small")
    assert take(pull, 1) == [b"small"]
    assert zmq.EVENT_DISCONNECTED not in quiet.poll()
    assert broker.stats("test")["messages_received"] == 1


# --- L11: other options of ZeroMQ's clients -------------------------------------------------------

def test_subscription_is_a_prefix_and_can_be_taken_back(open_broker):
    # Breaks: subscribers get what they did not ask for, or nothing.
    open_broker.create("news.sport")
    push = open_broker.producer("news.sport")
    prefix, everything = open_broker.subscriber("news.sport", b"news."), open_broker.subscriber(
        "news.sport", b"")
    other = open_broker.subscriber("news.sport", b"weather")
    subscribed(push, prefix, everything)
    push.send(b"1")
    for sub in prefix, everything:
        assert take_pairs(sub, 1) == [(b"news.sport", b"1")]
    other.setsockopt(zmq.SUBSCRIBE, b"news.sport")
    subscribed(push, other)
    prefix.setsockopt(zmq.UNSUBSCRIBE, b"news.")

    def is_quiet():
        while prefix.poll(0):
            prefix.recv_multipart()
        push.send(b"2")
        take_pairs(everything, 1)
        return not prefix.poll(50)
    wait_for(is_quiet, "the end of a subscription")


def test_heartbeats_of_a_client_are_answered(serve):
    # Breaks: clients with heartbeats close a connection that works, again and again.
    broker = serve()
    broker.create("test")
    push = broker.producer("test")
    pull, watch = broker.connect(zmq.PULL, broker.join("test", "pull"), heartbeat_ivl=20,
                                 heartbeat_timeout=2000)
    watch.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    assert not pull.poll(3000)  # Longer than the client waits for an answer.
    assert zmq.EVENT_DISCONNECTED not in watch.poll()
    push.send(b"hello")
    assert take(pull, 1) == [b"hello"]
