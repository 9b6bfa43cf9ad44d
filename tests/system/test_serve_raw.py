"""If these tests failed, clients without ZeroMQ could not use `leat serve`, would lose messages that were counted as
accepted, or would get in without a token."""
import json
import signal
import struct

import pytest

from broker import PASSWORD, PROBE, Bytes, subscribed, take, take_pairs, wait_for


class Raw(Bytes):
    """A connection with raw framing."""

    def hello(self, **fields):
        self.send_message(json.dumps(fields).encode())
        return json.loads(self.read_message())

    def send_message(self, *payloads):
        self.send(b"".join(struct.pack("<I", len(payload)) + payload for payload in payloads))

    def read_message(self):
        return self.read(struct.unpack("<I", self.read(4))[0])

    def read_messages(self, count):
        """The next ones that are no probes."""
        messages = []
        while len(messages) < count:
            if (message := self.read_message()) != PROBE:
                messages.append(message)
        return messages

    def send_count(self, count):
        self.send(struct.pack("<Q", count))

    def read_count(self):
        return struct.unpack("<Q", self.read(8))[0]

    def counted(self, count):
        """Waits until so many of its messages are in the topic; returns every count that came."""
        counts = [self.read_count()]
        while counts[-1] < count:
            counts.append(self.read_count())
        assert counts == sorted(set(counts)) and counts[-1] == count
        return counts


def join(broker, topic, role, with_login=None):
    """Where to connect, and the token."""
    answer = broker.ask({**broker.join_command(topic, role, connection_type="socket", leat=1),
                         **(with_login or {})})
    assert answer["status"] == "ok", answer
    return int(answer["bind_uri"].rpartition(":")[2]), answer["token"]


def connected(broker, topic, role, with_login=None, **fields):
    port, token = join(broker, topic, role, with_login)
    client = Raw(port)
    assert client.hello(type=role, token=token, **fields) == {"status": "ok", "topic": topic}
    return client


# --- Messages -------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["queue", "file"])
def test_everything_that_was_counted_arrives(serve, kind):
    # Breaks: messages are lost or changed between clients without ZeroMQ, or counts tell of too many.
    broker = serve()
    broker.create("test", broker_type=kind)
    with connected(broker, "test", "pub") as producer, connected(broker, "test", "pull") as puller:
        sent = [b"", b"x", b"%d" % 2**40, bytes(range(256)) * 40, b"y" * 500_000]
        sent += [b"%d" % i for i in range(2000)]
        producer.send_message(*sent[:3])
        producer.counted(3)
        assert broker.stats("test")["messages_received"] >= 3
        producer.send_message(*sent[3:])
        producer.counted(len(sent))
        assert puller.read_messages(len(sent)) == sent
        broker.stats_become("test", messages_received=len(sent), queue_size=0, publishers_count=1,
                            subscribers_count=1)
    broker.stats_become("test", publishers_count=0, subscribers_count=0)


def test_both_framings_are_one_topic(serve):
    # Breaks: who uses ZeroMQ and who does not cannot talk to each other.
    broker = serve()
    broker.create("test")
    push, sub = broker.producer("test"), broker.subscriber("test")
    subscribed(push, sub)
    with connected(broker, "test", "pub") as producer, connected(broker, "test", "sub") as listener:
        push.send(b"by ZeroMQ")
        producer.send_message(b"raw")
        producer.counted(1)
        wanted = {b"by ZeroMQ", b"raw"}
        assert {message for _, message in take_pairs(sub, 2)} == wanted
        assert set(listener.read_messages(2)) == wanted
        pull = broker.puller("test")
        producer.send_message(b"shared")
        assert take(pull, 1) == [b"shared"]
        assert listener.read_messages(1) == [b"shared"]


def test_pullers_of_both_framings_share(serve):
    # Breaks: a message comes twice, or never.
    broker = serve()
    broker.create("test")
    pull = broker.puller("test")
    with connected(broker, "test", "pull") as raw, connected(broker, "test", "pub") as producer:
        producer.send_message(*[b"%d" % i for i in range(1000)])
        producer.counted(1000)
        broker.stats_become("test", queue_size=0)
        got = take(pull, 1)
        while pull.poll(100):
            got.append(pull.recv())
        got += raw.read_messages(1000 - len(got))
        assert sorted(got) == sorted(b"%d" % i for i in range(1000))


def test_connection_may_be_as_slow_as_a_byte_at_a_time(serve):
    # Breaks: a client's messages are wrong if the network cuts them at odd places.
    broker = serve()
    broker.create("test")
    port, token = join(broker, "test", "pub")
    with Raw(port) as producer, connected(broker, "test", "pull") as puller:
        hello = json.dumps({"type": "pub", "token": token}).encode()
        for byte in struct.pack("<I", len(hello)) + hello + b"\5\0\0\0hello\0\0\0\0\1\0\0\0x":
            producer.send(bytes([byte]))
        assert json.loads(producer.read_message())["status"] == "ok"
        assert puller.read_messages(3) == [b"hello", b"", b"x"]


# --- What is promised -----------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["queue", "file"])
def test_counted_messages_outlive_a_killed_broker(serve, kind):
    # Breaks: a producer was told that its messages are safe, and they are gone.
    broker = serve()
    broker.create("test", broker_type=kind)
    accepted = 0
    for number in range(5):
        producer = connected(broker, "test", "pub")
        producer.send_message(*[b"%d %d" % (number, i) for i in range(3000)])
        while (count := producer.read_count()) < 1000:
            pass
        broker.stop(signal.SIGKILL)
        accepted += count
        producer.close()
        broker.start()
    received = broker.stats("test")["messages_received"]
    assert received >= accepted
    with connected(broker, "test", "pull") as puller:
        got = puller.read_messages(received)
    for number in range(5):
        mine = [message for message in got if message.startswith(b"%d " % number)]
        assert len(mine) >= 1000 and mine == [b"%d %d" % (number, i) for i in range(len(mine))]


def test_what_a_puller_did_not_acknowledge_goes_to_another(serve):
    # Breaks: a consumer that dies loses what it had taken and not done.
    broker = serve()
    broker.create("test")
    producer = connected(broker, "test", "pub")
    producer.send_message(*[b"%d" % i for i in range(10)])
    producer.counted(10)
    first = connected(broker, "test", "pull", acknowledge=True)
    got = first.read_messages(10)
    broker.stats_become("test", queue_size=10)
    first.send_count(2)
    first.send_count(4)
    broker.stats_become("test", queue_size=6)
    first.close()
    with connected(broker, "test", "pull", acknowledge=True) as second:
        assert sorted(second.read_messages(6)) == sorted(got[4:])
        second.send_count(6)
        broker.stats_become("test", queue_size=0, messages_sent=10)
        for done in range(13, 1000, 7):  # It gets more as long as it acknowledges.
            producer.send_message(*[b"%d" % i for i in range(7)])
            second.read_messages(7)
            second.send_count(done)
        broker.stats_become("test", queue_size=0)
    producer.close()


def test_who_acknowledges_what_it_did_not_get_is_cut_off(serve):
    # Breaks: a wrong count settles messages that nobody has seen.
    broker = serve()
    broker.create("test")
    with connected(broker, "test", "pub") as producer:
        producer.send_message(b"one", b"two")
        producer.counted(2)
    for count in 3, 2**64 - 1:
        with connected(broker, "test", "pull", acknowledge=True) as puller:
            puller.read_messages(2)
            puller.send_count(count)
            assert puller.is_closed()
    with connected(broker, "test", "pull") as puller:
        assert sorted(puller.read_messages(2)) == [b"one", b"two"]


def test_puller_that_does_not_read_gets_no_more_and_settles_nothing(serve):
    # Breaks: a client that acknowledges blindly fills the broker's memory, and its messages are gone.
    broker = serve()
    broker.create("test")
    with connected(broker, "test", "pub") as producer:
        producer.send_message(*[b"x" * 1_000_000] * 40)
        producer.counted(40)
    blind = connected(broker, "test", "pull", acknowledge=True)
    for count in range(1, 41):
        blind.send_count(count)
    broker.stats_become("test", subscribers_count=0)  # It is cut off.
    assert broker.stats("test")["queue_size"] > 20
    assert broker.resident_bytes() < 60 << 20


# --- Who is let in --------------------------------------------------------------------------------

def test_unmodified_client_of_lightq_sends_nothing_and_gets_messages(serve):
    # Breaks: LightQ's `socket` consumers, which only connect and read, get nothing.
    broker = serve("--data-auth", "joined")
    broker.plain = False
    broker.create("test")
    answer = broker.ask(broker.join_command("test", "pull", connection_type="socket"))
    assert set(answer) == {"cmd", "status", "topic", "bind_uri"}
    push = broker.producer("test")
    with Raw(int(answer["bind_uri"].rpartition(":")[2])) as puller:
        push.send(b"hello")
        push.send(b"world")
        assert puller.read_messages(2) == [b"hello", b"world"]


def test_hello_that_comes_too_late_ends_the_connection(serve):
    # Breaks: a producer on a slow network sends into nowhere, and takes messages that are for others.
    broker = serve("--data-auth", "joined")
    broker.plain = False
    broker.create("test")
    broker.join("test", "pub", connection_type="socket")  # As clients of LightQ, which say no hello.
    port, token = join(broker, "test", "pub")
    with Raw(port) as late:
        broker.stats_become("test", subscribers_count=1)  # Taken for a puller.
        late.send_message(json.dumps({"type": "pub", "token": token}).encode(), b"lost")
        assert late.is_closed()
    broker.stats_become("test", subscribers_count=0, messages_received=0)


def test_without_a_token_nobody_gets_in(serve):
    # Breaks: whoever reaches the port reads and writes everything.
    broker = serve("--limits-handshake-time", "2s")
    broker.create("test")
    broker.create("other")
    port, writes = join(broker, "test", "pub")
    _, reads = join(broker, "test", "pull")
    _, of_other = join(broker, "other", "pub")
    producer = connected(broker, "test", "pub")
    producer.send_message(b"secret")
    producer.counted(1)
    for fields in ({"type": "pull"}, {"type": "pull", "token": ""}, {"type": "pull", "token": writes},
                   {"type": "sub", "token": writes}, {"type": "pub", "token": reads},
                   {"type": "pub", "token": of_other}, {"type": "pub", "token": writes[:-1]},
                   {"type": "pub", "token": writes.swapcase()}, {"type": "pub", "token": "x" * 3000}):
        with Raw(port) as client:
            assert client.hello(**fields) == {"status": "error", "description": "unauthorized_access"}
            client.send_message(b"intruder")
            assert client.is_closed()
    with Raw(port) as silent:
        assert silent.is_closed()
    broker.stats_become("test", messages_received=1, queue_size=1)


def test_token_is_for_as_long_as_the_password(serve):
    # Breaks: clients must join again after each restart of the broker.
    broker = serve()
    broker.create("test")
    port, token = join(broker, "test", "pub")
    broker.stop()
    broker.start()
    with Raw(port) as producer:
        assert producer.hello(type="pub", token=token)["status"] == "ok"
        producer.send_message(b"after")
        producer.counted(1)


@pytest.mark.parametrize("data", [
    struct.pack("<I", 5000) + b"x" * 100, struct.pack("<I", 2**32 - 1), struct.pack("<I", 4) + b"null",
    struct.pack("<I", 0), b"\x0e\0\0\0" + b'{"type":"bad"}', b"\2\0\0\0[]" * 500,
    struct.pack("<I", 4096) + b"[" * 4096, b"GET / HTTP/1.1\r\n\r\n" * 10])
def test_garbage_is_refused_and_disturbs_nobody(serve, data):
    # Breaks: one stranger stops the topic for all.
    broker = serve("--limits-handshake-time", "2s")
    broker.create("test")
    port, _ = join(broker, "test", "pub")
    with connected(broker, "test", "pub") as producer, Raw(port, data) as stranger:
        assert stranger.is_closed()
        producer.send_message(b"hello")
        producer.counted(1)


def test_message_over_the_limit_ends_only_its_producer(serve):
    # Breaks: a length that nobody can mean takes gigabytes of memory.
    broker = serve()
    broker.create("test")
    with connected(broker, "test", "pub") as wrong, connected(broker, "test", "pub") as right:
        wrong.send_message(b"before")
        wrong.send(struct.pack("<I", 2**31) + b"x" * 1000)
        wrong.counted(1)
        assert wrong.is_closed()
        right.send_message(b"y" * (1 << 20))
        right.counted(1)
    broker.stats_become("test", messages_received=2)
    assert broker.resident_bytes() < 100 << 20


def test_join_tells_its_extras_only_to_those_who_ask(serve):
    # Breaks: LightQ's clients get fields that they do not know.
    broker = serve()
    broker.create("test")
    for role in "pub", "pull", "sub":
        for kind in "zmq", "socket":
            plain = broker.ask(broker.join_command("test", role, connection_type=kind))
            assert set(plain) == {"cmd", "status", "topic", "bind_uri"}
            more = broker.ask(broker.join_command("test", role, connection_type=kind, leat=1))
            assert more.pop("data_auth") == "password" and len(more.pop("token")) > 40
            assert more == plain
    ports = {broker.join("test", role, connection_type="socket") for role in ("pub", "pull", "sub")}
    assert len(ports) == 1
    assert PASSWORD not in str(broker.log())
    wait_for(lambda: broker.stats("test")["subscribers_count"] == 0)
