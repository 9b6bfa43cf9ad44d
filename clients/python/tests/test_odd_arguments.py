"""Arguments that run Python code, or that are not what they seem.
If these failed, an object whose methods close or change a handle in the middle of a call, or a finalizer that does,
would crash the interpreter."""
import ctypes
import gc
import operator
import sys

import numpy
import pytest

import leat


@pytest.fixture
def eager_collector():
    """The garbage collector runs with nearly each object that is made."""
    before = gc.get_threshold()
    gc.collect()
    yield lambda: gc.set_threshold(1)
    gc.set_threshold(*before)


@pytest.mark.parametrize("name", [None, 1, 10**30, b"policy", ("policy",), object()])
def test_keywords_that_are_no_strings(topic, name):
    """Python lets them through to functions that take any keywords."""
    group = topic.group("group")
    for call in (leat.Topic.open, leat.Topic.create, leat.Topic.open_or_create, leat.Topic.delete, topic.group,
                 topic.delete_group):
        with pytest.raises(TypeError, match="keywords must be strings"):
            call("topic", **{name: 1})
    for call in (leat.Topic.list, topic.publisher, topic.subscriber, group.join):
        with pytest.raises(TypeError, match="keywords must be strings"):
            call(**{name: 1})


def test_keywords_stay_with_their_owner(topic):
    opening = operator.methodcaller("open", "never", timeout=0.01)
    before = opening.__reduce__()
    with pytest.raises(leat.NotFound):
        opening(leat.Topic)
    assert opening.__reduce__()[0].keywords == before[0].keywords == {"timeout": 0.01}
    for call in (leat.Topic.delete, leat.Topic.create):
        with pytest.raises(TypeError, match="unexpected argument 'timeout'"):
            call("topic", timeout=1)


@pytest.mark.parametrize("kind", [9, 2**32 + 1, 2**64 - 1])
def test_a_place_to_begin_that_does_not_exist(topic, kind):
    with pytest.raises(leat.InvalidArgument):
        topic.subscriber(from_=leat.From(kind, 0))


@pytest.mark.parametrize("array", [
    numpy.full(4, None, dtype=object),
    numpy.zeros(4, dtype=[("first", "i4"), ("second", "O")]),
    (ctypes.py_object * 4)(*range(4)),
])
def test_references_are_not_overwritten(publisher, subscriber, array):
    publisher.publish(b"\1" * memoryview(array).itemsize)
    with pytest.raises(TypeError, match="Python objects"):
        subscriber.read_into(array)
    repr(array)
    assert len(subscriber.poll()) == 1


def test_fields_may_have_any_name(publisher, subscriber):
    publisher.publish(b"\1\0\0\0\2\0\0\0")
    array = numpy.zeros(1, dtype=[("Offset", "<i4"), ("O", "<i4")])
    assert subscriber.read_into(array) == 1
    assert array.tolist() == [(1, 2)]


def test_one_subscriber_is_not_several(publisher, subscriber):
    publisher.publish(b"x")
    with pytest.raises(TypeError, match="several subscribers"):
        leat.wait_any(subscriber, 0)
    assert subscriber.receive(0).value == b"x"


def test_arguments_that_close_the_handle(topic):
    class Closing:
        """A number, a flag and a record."""
        key, headers = None, ()

        def __init__(self, handle):
            self.handle = handle

        def close(self):
            self.handle.close()
            return 1

        __index__ = close
        __bool__ = lambda self: self.close() == 1  # noqa: E731
        value = property(lambda self: b"%d" % self.close())

    publisher = topic.publisher
    subscriber = topic.subscriber
    calls = [(publisher, lambda one, odd: one.claim(odd)), (publisher, lambda one, odd: one.publish(b"", timeout=odd)),
             (publisher, lambda one, odd: one.publish(b"", partition=odd)),
             (publisher, lambda one, odd: one.publish_batch([b"", odd])), (subscriber, lambda one, odd: one.poll(odd)),
             (subscriber, lambda one, odd: one.view(odd)), (subscriber, lambda one, odd: one.wait(odd)),
             (subscriber, lambda one, odd: leat.wait_any([one], odd)),
             (lambda: leat.Topic.open("topic"), lambda one, odd: one.subscriber(gating=odd)),
             (lambda: topic.group("group"), lambda one, odd: one.seek(leat.From(2, odd))),
             (topic.group("group").join, lambda one, odd: one.receive_batch(odd))]
    for make, call in calls:
        handle = make()
        with pytest.raises(ValueError, match="is closed"):
            call(handle, Closing(handle))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="allocations do not run the collector")
def test_the_collector_aborts_the_claim_before(publisher, eager_collector):
    """A claim in a circle is dropped by the allocation of the next one."""
    claim = publisher.claim(4)
    claim.data[:] = b"left"
    del claim
    eager_collector()
    with publisher.claim(4, timeout=5) as claim:
        claim.data[:] = b"next"
    assert publisher.publish(b"after") == 2


def test_a_finalizer_that_takes_a_claims_memory(publisher, subscriber, eager_collector):
    class Taker:
        def __del__(self):
            taken.append(claim.data)

    taken = []
    claim = publisher.claim(4)
    taker = Taker()
    taker.itself = taker
    del taker
    eager_collector()
    claim.data[:] = b"mine"
    gc.collect()
    assert len(taken) == 1
    claim.commit()
    assert subscriber.receive(0).value == b"mine"
