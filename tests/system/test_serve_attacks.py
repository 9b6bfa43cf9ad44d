"""If these tests failed, a crash of `leat serve` would lose messages that it had accepted, or a few bad clients would
take it from all others. LEAT_KILLS says how often it is killed (`make soak`: 200 times)."""
import json
import os
import random
import resource
import select
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest
import zmq

from broker import PASSWORD, USER, Bytes, subscribed, take, take_pairs, wait_for
from test_serve_raw import Raw, connected, join

KILLS = int(os.environ.get("LEAT_KILLS", 10))


# --- Kills ----------------------------------------------------------------------------------------

class Worker(threading.Thread):
    """A client that connects again whenever its connection ends, until it is told to stop."""

    def __init__(self, ports, **hello):
        super().__init__(daemon=True)
        self.port, self.hello = ports, hello
        self.ends = threading.Event()
        self.error = None
        self.start()

    def run(self):
        try:
            while not self.ends.is_set():
                try:
                    with Raw(self.port) as client:
                        if client.hello(**self.hello)["status"] == "ok":
                            client.socket.settimeout(0.2)
                            self.work(client)
                except (OSError, AssertionError):  # The broker is away, or was killed within a frame.
                    time.sleep(0.02)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def finish(self):
        self.ends.set()
        self.join(20)
        assert not self.is_alive() and self.error is None, self.error


class Producer(Worker):
    """Sends numbered messages; remembers those that were counted."""

    def __init__(self, name, *args, **hello):
        self.name_of_it, self.next, self.counted = name, 0, set()
        super().__init__(*args, type="pub", **hello)

    def work(self, client):
        sent = []
        done = 0
        while not self.ends.is_set() or done < len(sent):
            if not self.ends.is_set() and len(sent) - done < 2000:
                mine = [self.next + i for i in range(100)]
                self.next += 100
                sent += mine
                client.send_message(*[b"%s %d" % (self.name_of_it, i) for i in mine])
                time.sleep(0.003)  # So that the pullers, which are as slow, keep up.
            count = client.read_count()
            self.counted.update(sent[done:count])
            done = count


class Puller(Worker):
    """Acknowledges what it has."""

    def __init__(self, *args, **hello):
        self.got = []
        super().__init__(*args, type="pull", acknowledge=True, **hello)

    def work(self, client):
        count = 0
        while not self.ends.is_set():
            try:
                size = client.read(4)
            except socket.timeout:
                continue
            client.socket.settimeout(10)
            self.got.append(client.read(struct.unpack("<I", size)[0]))
            client.socket.settimeout(0.2)
            count += 1
            if count % 10 == 0:
                client.send_count(count)


@pytest.mark.parametrize("kind", ["queue", "file"])
def test_killed_again_and_again_under_load(serve, kind):
    # Breaks: a producer was told that a message is in the topic, and no puller ever gets it.
    broker = serve()
    broker.create("test", broker_type=kind)
    port, write = join(broker, "test", "pub")
    _, read = join(broker, "test", "pull")
    push, subscriber = broker.producer("test"), broker.subscriber("test")
    producers = [Producer(b"p%d" % i, port, token=write) for i in range(2)]
    pullers = [Puller(port, token=read) for _ in range(2)]
    for _ in range(KILLS):
        time.sleep(random.uniform(0.02, 0.4))
        broker.stop(signal.SIGKILL)
        broker.start()
    time.sleep(0.5)
    for worker in producers:
        worker.finish()
    # They acknowledge every tenth.
    wait_for(lambda: broker.stats("test")["queue_size"] < 20, "the end of the queue", 60)
    for worker in pullers:
        worker.finish()
    with connected(broker, "test", "pull") as rest:
        got = {message for worker in pullers for message in worker.got}
        got.update(rest.read_messages(broker.stats("test")["queue_size"]))
    for producer in producers:
        assert len(producer.counted) > 20 * KILLS
        assert not [i for i in producer.counted if b"%s %d" % (producer.name_of_it, i) not in got]
    subscribed(push, subscriber)  # Connections of ZeroMQ have come back by themselves.


# --- Crowds ---------------------------------------------------------------------------------------

def passes_messages_of_a_hundred(broker, topics, goes_on):
    """A hundred producers send to a puller of each topic, round after round; every message is counted and arrives."""
    pullers = [connected(broker, topic, "pull") for topic in topics]
    each = 100 // len(topics)
    producers = [[connected(broker, topic, "pub") for _ in range(each)] for topic in topics]
    rounds = 0
    while goes_on(rounds):
        for of_topic in producers:
            for number, producer in enumerate(of_topic):
                producer.send_message(*[b"%d %d %d" % (rounds, number, i) for i in range(10)])
        rounds += 1
        for of_topic, puller in zip(producers, pullers):
            for producer in of_topic:
                producer.counted(10 * rounds)
            got = sorted(puller.read_messages(each * 10))
            assert got == sorted(b"%d %d %d" % (rounds - 1, number, i)
                                 for number in range(each) for i in range(10))
    for client in [*pullers, *(producer for of_topic in producers for producer in of_topic)]:
        client.close()


def test_ten_thousand_idle_connections_disturb_nobody(serve, many_files):
    # Breaks: a fleet of clients that wait for rare messages takes a machine of its own.
    crowd = 10_000 if many_files > 11_000 else many_files - 1000
    broker = serve("--limits-topic-idle-time", "1h", ports=340)
    topics = [f"topic.{i}" for i in range(100)]
    places = []
    for topic in topics:
        broker.create(topic)
        places.append(join(broker, topic, "pull"))
    idle = []
    try:
        for i in range(crowd):
            port, token = places[i % 100]
            idle.append(Raw(port))
            idle[-1].send_message(json.dumps({"type": "pull", "token": token}).encode())
        for each in idle:
            assert b'"ok"' in each.read_message()
        assert broker.resident_bytes() < 100 << 20
        before = broker.cpu_seconds()
        time.sleep(1)
        assert broker.cpu_seconds() - before < 0.1
        active = [f"active.{i}" for i in range(10)]
        for topic in active:
            broker.create(topic)
        passes_messages_of_a_hundred(broker, active, lambda rounds: rounds < 20)
        waiting = select.poll()
        for each in idle:
            waiting.register(each.socket, select.POLLIN)
        assert waiting.poll(0) == []  # Nobody was cut off, and nobody got what is not for him.
        producers = [connected(broker, topic, "pub") for topic in topics]
        for producer in producers:
            producer.send_message(*[b"hello"] * (crowd // 100))
        for producer in producers:
            producer.counted(crowd // 100)
        assert all(each.read_message() == b"hello" for each in idle)
        assert broker.resident_bytes() < 300 << 20
    finally:
        for each in idle:
            each.close()


def test_thousands_of_wrong_logins_keep_nobody_out(serve):
    # Breaks: whoever guesses passwords as fast as he can has the broker for himself.
    broker = serve()
    broker.create("test")
    broker.create("work")
    push, pull = broker.producer("test"), broker.puller("test")
    port, _ = join(broker, "test", "pull")
    join(broker, "work", "pull")  # With a password that is known from now on.
    ends = threading.Event()
    tried = [0] * 3

    def guess(which):
        while not ends.is_set():
            try:
                if which == 0:
                    with Raw(port) as client:
                        assert client.hello(type="pull", token="x" * 80)["status"] == "error"
                else:
                    with Bytes(broker.port) as client:
                        for i in range(200):
                            if ends.is_set():
                                return
                            answer = client.ask({"cmd": "stats", "topic": "test" if which == 1 else "no",
                                                 "user_id": USER, "password": f"guess {i}"})
                            assert answer["status"] == "error"
                            tried[which] += 1
                tried[which] += 1
            except OSError:
                pass
    threads = [threading.Thread(target=guess, args=(i % 3,), daemon=True) for i in range(6)]
    for thread in threads:
        thread.start()
    try:
        for i in range(200):
            push.send(b"%d" % i)
            assert take(pull, 1) == [b"%d" % i]
        assert broker.stats("test")["messages_received"] == 200, "who is known comes in meanwhile"
        before = list(tried)

        def enough():  # A wrong password is answered late, a wrong token at once.
            return all(now - then >= wanted for now, then, wanted in zip(tried, before, (100, 3, 3)))
        passes_messages_of_a_hundred(broker, ["work"], lambda rounds: not enough() and rounds < 10_000)
        assert enough(), "guesses of each kind meanwhile"
        assert broker.resident_bytes() < 100 << 20
    finally:
        ends.set()
        for thread in threads:
            thread.join()


def test_broker_without_memory_ends_and_loses_nothing(serve):
    # Breaks: after one allocation that failed, some connections stand still for ever.
    broker = serve()
    broker.create("test")
    with connected(broker, "test", "pub") as producer:
        producer.send_message(*[b"kept"] * 100)
        producer.counted(100)
    port, token = join(broker, "test", "pub")
    address_space = int(next(line for line in open(f"/proc/{broker.process.pid}/status")
                             if line.startswith("VmSize")).split()[1]) * 1024
    resource.prlimit(broker.process.pid, resource.RLIMIT_AS,
                     (address_space + (64 << 20), address_space + (64 << 20)))
    greedy = []
    try:  # Each begins a message of 1 MiB and does not end it.
        for _ in range(200):
            greedy.append(Raw(port))
            greedy[-1].hello(type="pub", token=token)
            greedy[-1].send(struct.pack("<I", 1 << 20) + b"x" * 100_000)
    except (OSError, AssertionError):
        pass
    assert broker.process.wait(10) == 6, broker.log()
    assert "no memory" in broker.log()
    for each in greedy:
        each.close()
    broker.request.close(linger=0)
    broker.request = None
    broker.start()
    with connected(broker, "test", "pull") as puller:
        assert puller.read_messages(100) == [b"kept"] * 100


# --- Those that stand still -----------------------------------------------------------------------

CONSUMER = """
import sys, zmq
kind, uri, user, password, topic = sys.argv[1:]
socket = zmq.Context().socket(getattr(zmq, kind))
socket.plain_username, socket.plain_password = user.encode(), password.encode()
if kind == "SUB":
    socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
socket.connect(uri)
while True:
    parts = socket.recv_multipart()
    sys.stdout.buffer.write(parts[-1][:8] + b"\\n")
    sys.stdout.buffer.flush()
"""


@pytest.mark.parametrize("role", ["pull", "sub"])
@pytest.mark.parametrize("slow", ["overtaken", "disconnect"])
def test_one_of_eight_consumers_that_is_stopped_stops_no_other(serve, tmp_path, role, slow):
    # Breaks: one consumer in a debugger, and all others get nothing.
    broker = serve()
    broker.create("test", slow_subscribers=slow)
    uri = broker.join("test", role)
    files = [tmp_path / f"{i}" for i in range(8)]
    consumers = [subprocess.Popen(["/usr/bin/python3", "-c", CONSUMER, role.upper(), uri, USER,
                                   PASSWORD, "test"], stdout=open(path, "wb"))
                 for path in files]
    try:
        push = broker.producer("test")
        broker.stats_become("test", subscribers_count=8)
        payload = b"x" * 10_000
        sent = 0

        def everybody_gets_some():
            nonlocal sent
            push.send(b"%07d " % sent + payload)
            sent += 1
            return all(path.stat().st_size for path in files)
        wait_for(everybody_gets_some, "a message for each")

        def numbers(which):
            return {int(line) for path in which for line in path.read_bytes().split(b"\n")[:-1]}
        consumers[0].send_signal(signal.SIGSTOP)
        for i in range(5000):  # 50 MB: more than all buffers of the one that is stopped.
            push.send(b"%07d " % sent + payload)
            sent += 1
            if i % 250 == 249 and role == "sub":  # No faster than the others can be on a busy machine.
                wait_for(lambda: all(sent - 1 in numbers([path]) for path in files[1:]), "the last")
        if role == "sub":
            for path in files[1:]:
                wait_for(lambda path=path: sent - 1 in numbers([path]), "the last message", 30)
                assert numbers([path]) >= set(range(sent - 5000, sent))
        else:  # It has what its buffers hold, and what it was given and cannot take.
            wait_for(lambda: len(numbers(files)) > sent - 2500, "what the others get", 30)
            consumers[0].send_signal(signal.SIGCONT)
            wait_for(lambda: len(numbers(files)) == sent, "everything", 30)
        if role == "sub" and slow == "disconnect":
            wait_for(lambda: "too slow" in broker.log(), "its end")
    finally:
        for consumer in consumers:
            consumer.kill()
            consumer.wait()


def test_subscriber_that_is_too_slow_is_cut_off_if_the_topic_says_so(serve):
    # Breaks: a program that missed messages does not know it.
    broker = serve()
    broker.create("test", slow_subscribers="disconnect")
    slow = connected(broker, "test", "sub")
    push = broker.producer("test")
    for _ in range(600):
        push.send(b"x" * 100_000)
    broker.stats_become("test", subscribers_count=0)
    assert slow.is_closed()


def test_answer_is_not_ok_before_the_topic_is_open(serve, leat):
    # Breaks: a client is told that all is well, and then cut off.
    broker = serve()
    broker.create("test")
    port, token = join(broker, "test", "pull")
    broker.stop()
    leat("topic", "delete", "test", "--force")
    leat("topic", "create", "test", "--policy", "overwrite")  # Cannot have a group.
    broker.start()
    with Raw(port) as client:
        answer = client.hello(type="pull", token=token)
    assert answer["status"] == "error" and "test" in answer["description"], answer


def test_full_disk_stops_producers_until_there_is_room(serve, as_root):
    # Breaks: one full disk, and a topic takes no message for ever (LightQ's producers end then) or loses some.
    broker = serve()
    broker.stop()
    data = broker.data
    data.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", data], check=True)
    try:
        ballast = data / "ballast"
        ballast.write_bytes(bytes(320 << 20))
        broker.start()
        broker.create("test", broker_type="file")
        with connected(broker, "test", "pub") as producer:
            message = b"x" * 100_000
            messages = 2000
            sender = threading.Thread(target=producer.send_message, args=([message] * messages))
            sender.start()
            reached = 0
            producer.socket.settimeout(60)
            while select.select([producer.socket], [], [], 3)[0]:
                reached = producer.read_count()
            assert 300 < reached < messages
            assert "topic test: the disk is full; its producers wait" in broker.log()
            ballast.unlink()
            while reached < messages:
                reached = producer.read_count()
            sender.join()
            wait_for(lambda: "topic test: the disk has room again" in broker.log(), "the log")
        with connected(broker, "test", "pull") as puller:
            assert all(puller.read_message() == message for _ in range(messages))
        broker.stop()
    finally:
        subprocess.run(["umount", "-l", data], check=True)


def test_producers_that_left_a_full_topic_keep_nobody_out(serve, leat):
    # Breaks: a script that runs every minute takes all connections of the broker.
    broker = serve("--limits-connections", "50", "--limits-connections-per-address", "50")
    leat("topic", "create", "full", "--capacity", "1MiB", check=True)
    broker.create("full")
    broker.create("other")
    port, token = join(broker, "full", "pub")
    with Raw(port) as first:
        first.hello(type="pub", token=token)
        first.send_message(*[b"x" * 10_000] * 200)
        wait_for(lambda: broker.stats("full")["messages_received"] > 50, "a full topic")
        for _ in range(200):
            with Raw(port) as client:
                client.hello(type="pub", token=token)
                client.send_message(b"x")
        with Bytes(broker.port) as admin:
            assert admin.ask({"cmd": "ping"}) == b"pong"
        push, pull = broker.producer("other"), broker.puller("other")
        push.send(b"hello")
        assert take(pull, 1) == [b"hello"]
        assert "others need its place" in broker.log()
        before = broker.cpu_seconds()
        time.sleep(1)
        assert broker.cpu_seconds() - before < 0.1


def test_feed_goes_on_when_the_rule_for_slow_subscribers_changes(serve, tmp_path):
    # Breaks: the cure for a subscriber that holds up all is worse than the illness.
    file = tmp_path / "leat.toml"
    file.write_text("[subscribers]\nslow = 'wait'\n")
    broker = serve("--config", file)
    broker.create("test")
    slow = connected(broker, "test", "sub")
    with connected(broker, "test", "pub") as producer:
        message = b"x" * 1_000_000
        sender = threading.Thread(target=producer.send_message, args=[message] * 300, daemon=True)
        producer.socket.settimeout(60)
        sender.start()
        while select.select([producer.socket], [], [], 1)[0]:
            producer.read_count()
        file.write_text("[subscribers]\nslow = 'overtaken'\n")
        broker.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "read the configuration again" in broker.log(), "the new rule")
        reader = threading.Thread(target=slow.is_closed, daemon=True)
        reader.start()
        while producer.read_count() < 300:
            pass
        sender.join()


def test_subscriber_gets_nothing_from_before_it_came(serve):
    # Breaks: behind a subscriber that holds up a topic, others get messages as new that are old.
    broker = serve()
    broker.create("test", slow_subscribers="wait")
    slow = connected(broker, "test", "sub")
    with connected(broker, "test", "pub") as producer:
        producer.send_message(*[b"x" * 500_000] * 60)
        producer.counted(60)
        late = connected(broker, "test", "sub")
        producer.send_message(b"new")
        producer.counted(61)
        assert slow.read_messages(61)[60] == b"new"
        assert late.read_message() == b"new"


def test_puller_that_never_reads_keeps_little(serve):
    # Breaks: megabytes wait for a program that hangs, and are lost when it is killed.
    broker = serve()
    broker.create("test")
    stalled = connected(broker, "test", "pull")
    with connected(broker, "test", "pub") as producer:
        producer.send_message(*[b"x" * 1024] * 20_000)
        producer.counted(20_000)
    with connected(broker, "test", "pull") as other:  # A second later it has the rest.
        assert len(other.read_messages(18_500)) == 18_500
    stalled.close()


def test_limits_are_named_in_the_log(serve):
    # Breaks: a client connects again and again, and nobody knows why it is cut off.
    broker = serve("--limits-message-size", "10KiB", "--limits-handshake-time", "500ms", "--log-level", "event")
    broker.create("test")
    with connected(broker, "test", "pub") as producer:
        producer.send_message(b"x" * 10_241)
        assert producer.is_closed()
    push = broker.producer("test")
    push.send(b"x" * 10_241)
    with Raw(join(broker, "test", "pub")[0]) as silent:
        assert silent.is_closed()
    for words in ("10241 bytes; the limit is 10240", "10241 bytes", "no hello in time"):
        wait_for(lambda words=words: words in broker.log(), words)


def test_a_backlog_of_large_messages_on_disk_takes_no_memory(serve):
    # Breaks: pullers that are idle and one that seeks, and the broker is killed for its memory.
    broker = serve()
    broker.create("test", broker_type="file")
    with connected(broker, "test", "pub") as producer:
        producer.socket.settimeout(60)
        for _ in range(200):
            producer.send_message(b"x" * 1_000_000)
        while producer.read_count() < 200:
            pass
    pullers = [connected(broker, "test", "pull", acknowledge=i % 2 == 0) for i in range(8)]
    time.sleep(1)
    assert broker.resident_bytes() < 100 << 20
    for puller in pullers:
        puller.close()
