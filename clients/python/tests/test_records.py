"""What is published is what is read: values, keys, headers, batches, gaps; one by one, in lists, into arrays.
If these failed, a program would read other bytes than were published, miss a record or a gap, or publish a part of
what it was to publish as a whole."""
import array
import mmap
import threading
import time

import numpy
import pytest

import leat


def test_values_of_every_kind(publisher, subscriber):
    values = [b"", b"\0", b"bytes", bytearray(b"array"), memoryview(b"view")[1:], array.array("I", [1, 2]),
              numpy.arange(3, dtype="u1"), b"x" * 100_000]
    for offset, value in enumerate(values):
        assert publisher.publish(value) == offset
    assert publisher.publish_batch(values) == len(values)
    records = subscriber.poll()
    assert [record.value for record in records] == [bytes(value) for value in values] * 2
    assert [record.offset for record in records] == list(range(len(values) * 2))


def test_key_headers_timestamp_and_partition(publisher, subscriber):
    headers = [(b"name", b"value"), (b"name", b"again"), (b"", b"\0"), (bytearray(b"x"), b"")]
    publisher.publish(b"one", key=b"\0key", headers=headers, partition=0, timeout=1)
    publisher.publish(b"two", b"", {b"only": b"this"})
    publisher.publish(b"three")
    one, two, three = subscriber.poll()
    assert (one.value, one.key, one.partition) == (b"one", b"\0key", 0)
    assert one.headers == tuple((bytes(name), value) for name, value in headers)
    assert abs(one.timestamp_ms / 1000 - time.time()) < 60
    assert (two.key, two.headers) == (b"", ((b"only", b"this"),))
    assert (three.key, three.headers) == (None, ())
    assert repr(one) == "Record(partition=0, offset=0, key=b'\\x00key', value=b'one')"


def test_a_topic_without_timestamps():
    topic = leat.Topic.create("plain")
    publisher, subscriber = topic.publisher(), topic.subscriber()
    publisher.publish(b"one", headers=[(b"a", b"b")])
    assert subscriber.receive(1).timestamp_ms is None
    with pytest.raises(leat.NeedsTimestamps):
        topic.subscriber(from_=leat.From.time_ms(0))


def test_batches_of_records(publisher, subscriber):
    publisher.publish_batch(iter([b"plain", leat.NewRecord(b"keyed", b"k", {b"h": b"v"}), bytearray(b"array")]))
    batch = subscriber.poll()
    assert [(one.value, one.key, one.headers) for one in batch] == [
        (b"plain", None, ()), (b"keyed", b"k", ((b"h", b"v"),)), (b"array", None, ())]
    publisher.publish_batch(batch)  # As they came.
    again = subscriber.poll()
    assert [(one.value, one.key, one.headers) for one in again] == [
        (one.value, one.key, one.headers) for one in batch]


@pytest.mark.parametrize("value", ["text", 5, None, [b"x"], object()])
def test_only_bytes_are_published(publisher, subscriber, value):
    calls = [lambda: publisher.publish(value), lambda: publisher.publish(b"", key=value or "", headers=[]),
             lambda: publisher.publish_batch([b"good", value]),
             lambda: publisher.publish(b"", headers=[(b"name", value)]),
             lambda: publisher.publish(b"", headers=[(value, b"value")])]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert subscriber.poll() == []


def test_a_text_is_refused_with_advice(publisher):
    with pytest.raises(TypeError, match="encode it first"):
        publisher.publish("text")
    for one in (b"bytes", "text", memoryview(b"x")):
        with pytest.raises(TypeError, match="an iterable of values"):
            publisher.publish_batch(one)


def test_wrong_calls_of_publish(publisher):
    calls = [lambda: publisher.publish(), lambda: publisher.publish(b"", b"", [], 0, 1, 2),
             lambda: publisher.publish(b"", value=b""), lambda: publisher.publish(b"", unknown=1),
             lambda: publisher.publish(b"", timeout="1"), lambda: publisher.publish(b"", partition="0"),
             lambda: publisher.publish(b"", headers=5), lambda: publisher.publish(b"", headers=[b"one"]),
             lambda: publisher.publish(b"", headers=[(b"a", b"b", b"c")]), lambda: publisher.publish_batch(5)]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    for timeout in (-1, float("nan"), -0.001):
        with pytest.raises(ValueError):
            publisher.publish(b"", timeout=timeout)
    for partition in (1, 1 << 32, (1 << 32) - 1, 1 << 63):
        with pytest.raises(leat.InvalidArgument):
            publisher.publish(b"", partition=partition)
    with pytest.raises(leat.InvalidArgument):
        publisher.publish_batch([])


def test_an_iterable_that_fails_publishes_nothing(publisher, subscriber):
    def values():
        yield b"one"
        raise KeyError("stop")

    with pytest.raises(KeyError):
        publisher.publish_batch(values())
    assert subscriber.poll() == []


def test_too_large(topic, publisher):
    with pytest.raises(leat.TooLarge) as caught:
        publisher.publish(b"x" * (publisher.max_record_size + 1))
    assert caught.value.detail == publisher.max_record_size == topic.max_record_size


def test_values_over_4_gib(publisher):
    huge = memoryview(mmap.mmap(-1, (1 << 32) + 10, flags=mmap.MAP_PRIVATE | 0x4000))  # MAP_NORESERVE: never touched.
    for call in (lambda: publisher.publish(huge), lambda: publisher.publish(b"", key=huge),
                 lambda: publisher.publish_batch([huge]), lambda: publisher.publish(b"", headers={b"h": huge}),
                 lambda: publisher.publish(b"", headers=[(huge, b"")]),
                 lambda: publisher.claim(1 << 40), lambda: publisher.claim((1 << 64) - 1)):
        with pytest.raises(leat.TooLarge):
            call()
    with pytest.raises(ValueError):
        publisher.claim(1 << 64)


def test_sums_over_4_gib(publisher, subscriber):
    """No part is, but all together are: 17 times the same 256 MiB, never touched."""
    part = memoryview(mmap.mmap(-1, 1 << 28, flags=mmap.MAP_PRIVATE | 0x4000))
    for call in (lambda: publisher.publish_batch([part] * 17),
                 lambda: publisher.publish(b"", headers=[(b"h", part)] * 17),
                 lambda: publisher.publish(b"", headers=[(part, b"")] * 17)):
        with pytest.raises(leat.TooLarge):
            call()
    publisher.publish(b"usable")
    assert subscriber.receive(5).value == b"usable"


def test_a_full_topic():
    topic = leat.Topic.create("small", capacity_bytes=1 << 16)
    publisher, subscriber = topic.publisher(), topic.subscriber()
    with pytest.raises(leat.Full):
        while True:
            publisher.publish(b"x" * 1000, timeout=0)
    assert publisher.room_fd() >= 0
    begin = time.monotonic()
    with pytest.raises(leat.Timeout):
        publisher.publish(b"x" * 1000, timeout=0.12)
    assert 0.12 <= time.monotonic() - begin
    with pytest.raises(leat.Timeout):
        publisher.publish_batch([b"x" * 1000], timeout=0.01)
    with pytest.raises(leat.Full):
        publisher.claim(1000, timeout=0)
    with pytest.raises(TimeoutError):
        publisher.claim(1000, timeout=0.01)
    while subscriber.poll():
        pass
    publisher.publish(b"x" * 1000, timeout=10)


def test_a_claim_that_waited_for_room_has_its_size():
    topic = leat.Topic.create("full", capacity_bytes=1 << 16)
    with topic.subscriber() as keeping, topic.publisher() as publisher:
        with pytest.raises(leat.Full):
            while True:
                publisher.publish(b"x" * 1000, timeout=0)

        def drain():
            while keeping.poll():
                pass

        timer = threading.Timer(0.1, drain)
        timer.start()
        with publisher.claim(3000, timeout=60) as claim:
            assert len(claim) == len(claim.data) == 3000
        timer.join()


def test_a_topic_that_fails_when_full():
    publisher = (topic := leat.Topic.create("small", capacity_bytes=1 << 16, policy="fail")).publisher()
    gate = topic.subscriber()
    with pytest.raises(leat.Full):
        while True:
            publisher.publish(b"x" * 1000)
    gate.close()


def test_receiving(publisher, subscriber):
    assert subscriber.poll() == []
    with pytest.raises(leat.Timeout):
        subscriber.receive(0)
    with pytest.raises(TimeoutError):
        subscriber.receive_batch(timeout=0.01)
    with pytest.raises(leat.Timeout):
        subscriber.wait(0.01)
    publisher.publish_batch([b"%d" % i for i in range(200)])
    subscriber.wait()
    assert subscriber.receive().value == b"0"
    assert [one.value for one in subscriber.receive_batch(limit=3, timeout=1)] == [b"1", b"2", b"3"]
    assert len(subscriber.poll()) == 64
    assert len(subscriber.poll(1000)) == 132
    assert subscriber.offset() == subscriber.offset(0) == 200
    for wrong in (0, -1, 1 << 64):
        with pytest.raises(ValueError):
            subscriber.poll(wrong)
    with pytest.raises(TypeError):
        subscriber.poll("5")
    with pytest.raises(leat.InvalidArgument):
        subscriber.offset(1)
    assert subscriber.poll(1 << 63) == []


def test_where_a_subscriber_begins(topic, publisher):
    publisher.publish_batch([b"%d" % i for i in range(10)])

    def first(**options):
        with topic.subscriber(**options) as subscriber:
            return [one.offset for one in subscriber.poll()][:1]

    assert first() == first(from_="end") == []
    assert first(from_="beginning") == first(from_=leat.From.time_ms(0)) == [0]
    assert first(from_=leat.From.offset(4)) == [4]
    assert first(from_=leat.From.last(3)) == [7]
    assert first(from_="beginning", gating=False) == [0]
    assert first(from_="beginning", gating=False, in_place=True, spin=0, patience=0) == [0]
    with pytest.raises(leat.InvalidArgument):
        first(in_place=True)
    for wrong in ("middle", "", 5, (1, 2, 3), None and 0, leat.From(9, 9)):
        if wrong is not None:
            with pytest.raises((ValueError, TypeError)):
                first(from_=wrong)


def test_iterating_ends_when_it_is_stopped(publisher, subscriber):
    publisher.publish_batch([b"1", b"2"])
    subscriber.stop()
    assert subscriber.is_stopped()
    assert [one.value for one in subscriber] == [b"1", b"2"]  # What is there is still delivered.
    with pytest.raises(leat.Stopped):
        subscriber.receive()
    subscriber.resume()
    with pytest.raises(leat.Timeout):
        subscriber.receive(0.01)


def test_gaps(publisher, subscriber):
    publisher.claim(10).abort()
    publisher.publish(b"after")
    gap, record = subscriber.poll()
    assert isinstance(gap, leat.Gap)
    assert (gap.partition, gap.offset, gap.count, gap.reason) == (0, 0, 1, "aborted")
    assert repr(gap) == "Gap(partition=0, offset=0, count=1, reason='aborted')"
    assert record.offset == 1


def test_partitions():
    topic = leat.Topic.create("several", partitions=4)
    publisher = topic.publisher(partition=2)
    subscribers = [topic.subscriber(partition=i) for i in range(4)]
    assert publisher.partition == 2
    publisher.publish(b"2")
    publisher.publish(b"3", partition=3)
    publisher.publish_batch([b"1"], partition=1)
    assert [[one.value for one in subscriber.poll()] for subscriber in subscribers] == [[], [b"1"], [b"2"], [b"3"]]
    assert leat.wait_any(subscribers[:1] + [topic.subscriber(from_="beginning")], timeout=1) == 1


def test_wait_any(topic, publisher, subscriber):
    others = [topic.subscriber() for _ in range(3)]
    with pytest.raises(leat.Timeout):
        leat.wait_any(others, timeout=0.01)
    publisher.publish(b"x")
    for one in others[:2]:
        one.poll()
    assert leat.wait_any(others) == 2
    for wrong in ([], [subscriber] * 65):
        with pytest.raises(ValueError):
            leat.wait_any(wrong)
    for wrong in ([publisher], 5, [None]):
        with pytest.raises(TypeError):
            leat.wait_any(wrong)
    with pytest.raises(leat.Busy):
        leat.wait_any([subscriber, subscriber])
    others[0].close()
    with pytest.raises(ValueError):
        leat.wait_any(others)
    assert subscriber.receive(0).value == b"x"  # Nobody uses it any more.


def test_values_alone(publisher, subscriber):
    publisher.publish_batch([b"%d" % i for i in range(5)])
    publisher.claim(1).abort()
    publisher.publish(b"behind")
    assert subscriber.read_values(2) == [b"0", b"1"]
    assert subscriber.read_values(timeout=1) == [b"2", b"3", b"4"]
    assert subscriber.offset() == 5
    for _ in range(2):
        with pytest.raises(ValueError, match="Gap"):
            subscriber.read_values()
    subscriber.wait(0)
    assert leat.wait_any([subscriber], 0) == 0
    with pytest.raises(ValueError, match="receive"):
        subscriber.view(timeout=0)
    assert isinstance(subscriber.receive(), leat.Gap)
    assert subscriber.read_values(timeout=None) == [b"behind"]
    assert subscriber.read_values() == []
    assert subscriber.offset() == 7


def test_into_arrays(publisher, subscriber):
    rows = numpy.arange(12, dtype="f8").reshape(6, 2)
    publisher.publish_batch(list(rows))
    into = numpy.zeros((4, 2))
    assert subscriber.read_into(into) == 4
    assert (into == rows[:4]).all()
    publisher.publish(b"odd")
    publisher.publish(rows[0])
    assert subscriber.read_into(into, timeout=1) == 2
    assert (into[:2] == rows[4:]).all()
    for _ in range(2):
        with pytest.raises(ValueError, match="3 bytes, and a row 16"):
            subscriber.read_into(into)
    assert subscriber.offset() == 6
    assert [one.value for one in subscriber.poll(1)] == [b"odd"]
    assert subscriber.read_into(into) == 1
    assert subscriber.read_into(into) == 0
    with pytest.raises(leat.Timeout):
        subscriber.read_into(into, timeout=0.01)


def test_into_structured_arrays_and_other_buffers(publisher, subscriber):
    kind = numpy.dtype([("price", "<f8"), ("size", "<u4")])
    rows = numpy.array([(1.5, 2), (2.5, 3)], dtype=kind)
    publisher.publish_batch([row.tobytes() for row in rows])
    into = numpy.zeros(2, dtype=kind)
    assert subscriber.read_into(into) == 2
    assert (into == rows).all()
    publisher.publish_batch([b"a", b"b", b"c"])
    buffer = bytearray(2)
    assert subscriber.read_into(buffer) == 2
    assert buffer == b"ab"
    fortran = numpy.zeros((3, 5), order="F")
    for wrong, error in ((b"read-only", BufferError), (5, TypeError), (numpy.zeros((0, 4)), ValueError),
                         (fortran, (BufferError, ValueError)), (numpy.zeros(()), ValueError)):
        with pytest.raises(error):
            subscriber.read_into(wrong)
    assert subscriber.receive(0).value == b"c"
