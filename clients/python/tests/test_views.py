"""Memory that is lent: claims to write in place, batches to read in place. None outlives what it belongs to.
If these failed, an array kept too long would read freed memory, or a claim left by an exception would be published."""
import gc
import threading
import time

import numpy
import pytest

import leat


def is_busy(call):
    """Whether another thread is in a call."""
    try:
        call()
    except leat.Busy:
        return True
    return False


def test_a_claim_is_committed_at_the_end(publisher, subscriber):
    with publisher.claim(10) as claim:
        assert (len(claim), len(claim.data), claim.offset) == (10, 10, 0)
        data = claim.data  # Its own memoryview may be kept: it is released.
        data[:5] = b"hello"
        data[5:] = b"there"
    assert subscriber.receive(0).value == b"hellothere"
    with pytest.raises(ValueError):
        data[0] = 1
    with pytest.raises(ValueError):
        claim.data[0] = 1


def test_a_claim_is_committed_in_part(publisher, subscriber):
    with publisher.claim(10, timeout=1) as claim:
        claim.data[:3] = b"abc"
        with pytest.raises(leat.InvalidArgument):
            claim.commit(11)
        assert claim.commit(3) == 0
    assert subscriber.receive(0).value == b"abc"
    for call in (claim.commit, claim.abort):
        with pytest.raises(leat.NotInFlight):
            call()
    with pytest.raises(leat.NotInFlight):
        with claim:
            pass
    with pytest.raises(ValueError):
        claim.data
    with pytest.raises(BufferError):
        memoryview(claim)


def test_numpy_writes_in_place(publisher, subscriber):
    with publisher.claim(32) as claim:
        array = numpy.frombuffer(claim.data, dtype="f8")
        array[:] = [1, 2, 3, 4]
        del array
    assert numpy.frombuffer(subscriber.receive(0).value).tolist() == [1, 2, 3, 4]
    with publisher.claim(0) as claim:
        assert len(claim.data) == 0
    assert subscriber.receive(0).value == b""


def test_a_claim_left_by_an_exception_is_aborted(publisher, subscriber):
    with pytest.raises(KeyError):
        with publisher.claim(10) as claim:
            claim.data[:] = b"unfinished"
            raise KeyError
    publisher.publish(b"after")
    gap, after = subscriber.poll()
    assert (gap.reason, after.value) == ("aborted", b"after")


def test_a_dropped_claim_is_aborted(publisher, subscriber):
    publisher.claim(10)
    claim = publisher.claim(1)
    with pytest.raises(leat.Busy):
        publisher.claim(1)
    claim = None
    claim = publisher.claim(10)
    claim.data  # Now it is part of a circle.
    del claim
    gc.collect()
    publisher.publish(b"after")
    assert [type(one) for one in subscriber.poll()] == [leat.Gap] * 3 + [leat.Record]


def test_a_claim_whose_memory_is_in_use_does_not_end(publisher, subscriber):
    claim = publisher.claim(8)
    kept = numpy.frombuffer(claim.data, dtype="u1")
    for call in (claim.commit, claim.abort):
        with pytest.raises(BufferError):
            call()
    assert subscriber.poll() == []
    with pytest.raises(leat.Busy):
        publisher.publish(b"another")
    with pytest.raises(BufferError):
        with claim:
            pass
    with pytest.raises(leat.NotInFlight):
        claim.commit()
    with pytest.raises(BufferError):
        memoryview(claim)
    kept[0] = 1  # Nobody else has this memory yet.
    del kept
    publisher.publish(b"after")
    assert [type(one) for one in subscriber.poll()] == [leat.Gap, leat.Record]


def test_an_exception_is_not_hidden_by_memory_in_use(publisher):
    with pytest.raises(KeyError):
        with publisher.claim(8) as claim:
            kept = memoryview(claim)
            raise KeyError
    kept.release()
    publisher.publish(b"after")


def test_closing_with_an_open_claim(topic, subscriber):
    publisher = topic.publisher()
    claim = publisher.claim(8)
    kept = claim.data[2:]
    with pytest.raises(BufferError):
        publisher.close()
    assert publisher.closed
    with pytest.raises(ValueError):
        publisher.publish(b"")
    kept[0] = 1
    kept.release()
    publisher.close()
    assert subscriber.receive(5).reason == "aborted"
    for call in (claim.commit, claim.abort):
        with pytest.raises((ValueError, leat.NotInFlight)):
            call()
    other = topic.publisher()
    claim = other.claim(8)
    other.close()
    with pytest.raises(leat.NotInFlight):
        claim.commit()


def test_closing_with_a_claim_of_which_only_the_memory_is_kept(topic):
    publisher = topic.publisher()
    kept = publisher.claim(8).data
    publisher.close()  # Takes back what keeps the claim alive.
    with pytest.raises(ValueError):
        kept[0] = 1


def test_a_batch_is_read_in_place(publisher, subscriber):
    publisher.publish_batch([b"%d" % i for i in range(5)])
    publisher.publish(b"keyed", key=b"k", headers={b"h": b"v"})
    publisher.claim(5).abort()
    with subscriber.view(limit=100, timeout=5) as batch:
        assert len(batch) == 7
        assert [bytes(one.value) for one in batch if isinstance(one, leat.RecordView)] == [
            b"0", b"1", b"2", b"3", b"4", b"keyed"]
        keyed = batch[5]
        assert (keyed.key, keyed.headers, keyed.offset, keyed.partition) == (b"k", ((b"h", b"v"),), 5, 0)
        assert keyed.timestamp_ms > 0
        assert keyed.value.readonly
        assert bytes(memoryview(keyed)) == b"keyed"
        with pytest.raises(TypeError):
            keyed.value[0] = 1
        with pytest.raises(IndexError):
            batch[7]
        assert isinstance(batch[-1], leat.Gap)
        for call in (subscriber.poll, subscriber.receive, subscriber.view, subscriber.read_values):
            with pytest.raises(BufferError, match="has not ended"):
                call()
    for name in ("value", "key", "headers", "timestamp_ms"):
        with pytest.raises(ValueError, match="has ended"):
            getattr(keyed, name)
    for call in (lambda: batch[0], lambda: list(batch), batch.__enter__):
        with pytest.raises(ValueError, match="has ended"):
            call()
    batch.release()
    with pytest.raises(BufferError):
        memoryview(keyed)
    with pytest.raises(leat.Timeout):
        subscriber.view(timeout=0)


def test_a_view_kept_past_its_batch(publisher, subscriber):
    publisher.publish(b"kept")
    publisher.publish(b"next")
    with pytest.raises(BufferError, match="1 views"):
        with subscriber.view(1) as batch:
            kept = batch[0].value[1:]
    with pytest.raises(BufferError):
        batch.release()
    with pytest.raises(BufferError):
        subscriber.poll()
    assert bytes(kept) == b"ept"
    kept.release()
    assert subscriber.receive(0).value == b"next"


def test_an_array_kept_past_its_batch(publisher, subscriber):
    publisher.publish(numpy.arange(4.0))
    with pytest.raises(BufferError):
        with subscriber.view() as batch:
            kept = numpy.frombuffer(batch[0], dtype="f8")
    del batch
    assert kept.tolist() == [0, 1, 2, 3]
    with pytest.raises(BufferError):
        subscriber.close()
    assert subscriber.closed
    with pytest.raises(ValueError):
        subscriber.poll()
    assert kept.sum() == 6
    del kept
    subscriber.close()


def test_an_exception_is_not_hidden_by_a_view(publisher, subscriber):
    publisher.publish(b"one")
    with pytest.raises(KeyError):
        with subscriber.view() as batch:
            kept = batch[0].value
            raise KeyError
    del kept


def test_a_view_outlives_all_handles(topic):
    publisher, subscriber = topic.publisher(), topic.subscriber()
    publisher.publish(b"here")
    kept = subscriber.view()[0].value
    del publisher, subscriber
    topic.close()
    gc.collect()
    leat.Topic.delete("topic", force=True)
    assert bytes(kept) == b"here"


def test_closing_ends_a_batch(publisher, subscriber):
    publisher.publish(b"one")
    batch = subscriber.view()
    record = batch[0]
    subscriber.close()
    with pytest.raises(ValueError):
        record.value
    with pytest.raises(ValueError):
        batch[0]


def test_closing_ends_a_batch_while_another_thread_waits(topic):
    with topic.publisher() as publisher:
        publisher.publish(b"one")
    subscriber = topic.subscriber(from_="beginning")
    batch = subscriber.view()
    record = batch[0]

    def wait():
        with pytest.raises(leat.Stopped):
            subscriber.wait()

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not is_busy(subscriber.offset):
        time.sleep(0.01)
    subscriber.close()
    waiting.join()
    topic.close()  # Its memory is unmapped.
    for call in (lambda: record.value, lambda: record.key, lambda: batch[0]):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(BufferError):
        memoryview(record)


def test_a_dropped_batch_ends(publisher, subscriber):
    publisher.publish(b"one")
    publisher.publish(b"two")
    subscriber.view(1)
    assert subscriber.receive(0).value == b"two"
