"""What a program may do wrong gives an exception, never a crash.
If these failed, a mistake would end the interpreter without a traceback, or stop its other threads."""
import gc
import threading
import time

import pytest

import leat


class Elsewhere:
    """A call in another thread, which has begun to wait when this returns."""

    def __init__(self, call, *args):
        self.result = None
        self.thread = threading.Thread(target=self.run, args=(call, args))
        self.thread.start()
        time.sleep(0.1)
        assert self.thread.is_alive()

    def run(self, call, args):
        try:
            self.result = call(*args)
        except BaseException as error:
            self.result = error

    def join(self):
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.result


def fill(publisher):
    with pytest.raises(leat.Full):
        while True:
            publisher.publish(b"x" * 1000, timeout=0)


@pytest.fixture
def full():
    """A publisher and the subscriber that keeps its topic full."""
    topic = leat.Topic.create("full", capacity_bytes=1 << 16)
    with topic.subscriber() as subscriber, topic.publisher() as publisher:
        fill(publisher)
        yield publisher, subscriber


def test_use_after_close(topic):
    publisher, subscriber, group = topic.publisher(), topic.subscriber(), topic.group("group")
    member = group.join()
    publisher.publish(b"x")
    delivery = member.receive(5)
    topic.close()
    for call in (topic.publisher, topic.subscriber, topic.info, topic.group_names, lambda: topic.group("group"),
                 lambda: topic.find_group("group"), lambda: topic.name, lambda: topic.partitions,
                 lambda: topic.max_record_size, topic.shrink, topic.repair, topic.__enter__,
                 lambda: topic.delete_group("group"), lambda: topic.set_max_capacity(1)):
        with pytest.raises(ValueError, match="the topic is closed"):
            call()
    publisher.publish(b"still")  # Handles close in any order.
    group.close()
    for call in (group.join, group.info, group.position, group.released, lambda: group.name,
                 lambda: group.dead_letter_topic, lambda: group.seek("end")):
        with pytest.raises(ValueError, match="the group is closed"):
            call()
    publisher.close()
    for call in (lambda: publisher.publish(b""), lambda: publisher.publish(b"", key=b""), publisher.flush,
                 lambda: publisher.publish_batch([b""]), lambda: publisher.claim(1), publisher.request_sync,
                 publisher.durable_offset, publisher.last_offset, publisher.durable_fd, publisher.room_fd,
                 publisher.stop, publisher.resume, publisher.is_stopped, lambda: publisher.partition,
                 lambda: publisher.max_record_size, publisher.__enter__):
        with pytest.raises(ValueError, match="the publisher is closed"):
            call()
    subscriber.close()
    for call in (subscriber.poll, subscriber.receive, subscriber.receive_batch, subscriber.read_values,
                 lambda: subscriber.read_into(bytearray(1)), subscriber.view, subscriber.wait, subscriber.fileno,
                 subscriber.offset, subscriber.is_lossy, subscriber.stop, lambda: next(subscriber)):
        with pytest.raises(ValueError, match="the subscriber is closed"):
            call()
    member.close()
    for call in (member.receive, member.receive_batch, member.wait, member.fileno, member.in_flight, member.stop,
                 lambda: member.acknowledge(delivery), lambda: member.acknowledge([delivery]),
                 lambda: member.acknowledge_up_to(delivery), member.acknowledge_all,
                 lambda: member.requeue(delivery), lambda: next(member)):
        with pytest.raises(ValueError, match="the member is closed"):
            call()
    for one in (topic, publisher, subscriber, group, member):
        assert one.closed
        one.close()
        one.__exit__(None, None, None)


def test_types_are_made_by_the_library_only(topic, publisher, subscriber):
    for kind in (leat.Topic, leat.Publisher, leat.Subscriber, leat.Group, leat.Member, leat.Record, leat.Gap,
                 leat.Delivery, leat.Claim, leat.View, leat.RecordView):
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(TypeError):
            object.__new__(kind)
        with pytest.raises(TypeError):
            kind.something = 1
    with pytest.raises(TypeError):
        topic.__class__ = leat.Group
    with pytest.raises(TypeError):
        type("Mine", (leat.Topic,), {})
    for wrong in (subscriber, topic, 5):
        with pytest.raises(TypeError):
            leat.Publisher.publish(wrong, b"x")
    publisher.publish(b"x")
    record = subscriber.receive()
    with pytest.raises(AttributeError):
        record.value = b"y"
    with pytest.raises(AttributeError):
        del record.value


@pytest.mark.parametrize("wait", ["receive", "wait", "receive_batch", "view", "__next__"])
def test_two_threads_at_one_subscriber(subscriber, publisher, wait):
    other = Elsewhere(getattr(subscriber, wait))
    for call in (subscriber.poll, subscriber.receive, subscriber.offset, lambda: leat.wait_any([subscriber])):
        with pytest.raises(leat.Busy, match="in use by another thread"):
            call()
    publisher.publish(b"x")
    assert not isinstance(other.join(), BaseException)
    subscriber.offset()


def test_two_threads_at_one_publisher(full):
    publisher, subscriber = full
    other = Elsewhere(publisher.publish, b"x" * 1000)
    for call in (lambda: publisher.publish(b""), lambda: publisher.claim(1), publisher.durable_offset):
        with pytest.raises(leat.Busy):
            call()
    while subscriber.poll():
        pass
    assert isinstance(other.join(), int)


def test_other_threads_run_during_a_wait(subscriber):
    other = Elsewhere(subscriber.receive)
    begin = time.perf_counter()
    for _ in range(100_000):
        pass
    assert time.perf_counter() - begin < 5
    subscriber.stop()
    assert isinstance(other.join(), leat.Stopped)


def test_close_ends_a_wait_elsewhere(topic, full):
    group = topic.group("group")
    publisher, keeping = full
    handles = [(topic.subscriber(), "receive"), (topic.subscriber(), "wait"), (group.join(), "receive"),
               (looked := group.join(), "wait")]
    with pytest.raises(leat.Timeout):
        looked.receive(0)  # Before its first look a member may always have something to do.
    waits = [(one, Elsewhere(getattr(one, name))) for one, name in handles]
    waits += [(publisher, Elsewhere(publisher.publish, b"x" * 1000))]
    first, second = topic.subscriber(), topic.subscriber()
    waits += [(first, Elsewhere(leat.wait_any, [first, second]))]
    for handle, other in waits:
        handle.close()
        handle.close()
        assert handle.closed
        assert isinstance(other.join(), leat.Stopped)
        with pytest.raises(ValueError):
            handle.stop()
    second.poll()
    # They have left the topic.
    assert [one["role"] for one in topic.info()["participants"]] == ["subscriber"]


def test_closing_a_topic_or_group_that_other_threads_use():
    topic = leat.Topic.create("used")
    failures = []

    def use():
        try:
            while True:
                topic.info()
                topic.publisher().close()
        except ValueError:
            pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    topic.close()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_iterator_that_uses_its_publisher(publisher, subscriber):
    def values():
        publisher.publish(b"first")
        yield b"second"

    publisher.publish_batch(values())
    assert [one.value for one in subscriber.poll()] == [b"first", b"second"]

    def closing():
        yield b"x"
        publisher.close()

    with pytest.raises(ValueError):
        publisher.publish_batch(closing())


def test_a_buffer_cannot_shrink_while_it_waits(full):
    publisher, subscriber = full
    value = bytearray(1000)
    other = Elsewhere(publisher.publish_batch, [value])
    with pytest.raises(BufferError):
        value.clear()
    publisher.stop()
    assert isinstance(other.join(), leat.Stopped)
    value.clear()


def test_handles_pass_from_thread_to_thread(topic, publisher, subscriber):
    def one_round(i, into):
        publisher.publish(b"%d" % i)
        into.append(subscriber.receive(5).value)

    for i in range(50):
        into = []
        thread = threading.Thread(target=one_round, args=(i, into))
        thread.start()
        thread.join()
        assert into == [b"%d" % i]


def test_dropped_handles_are_closed(topic):
    handles = [topic.publisher(), topic.subscriber(), topic.group("group").join()]
    assert len(topic.info()["participants"]) == 3
    circle = [handles]
    circle.append(circle)
    del handles
    thread = threading.Thread(target=lambda: gc.collect())
    del circle
    thread.start()
    thread.join()
    assert topic.info()["participants"] == []


def test_a_handle_that_a_thread_dropped_while_waiting_is_closed(topic):
    other = Elsewhere(lambda: topic.subscriber().receive(0.3))
    assert isinstance(other.join(), leat.Timeout)
    other.result = None
    gc.collect()
    assert topic.info()["participants"] == []
