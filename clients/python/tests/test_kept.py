"""What a call has taken as the handler of a signal raises is returned by the next call.
If these failed, Ctrl-C or a timeout by a signal would cost the record that came just then."""
import os
import signal
import threading
import time

import pytest

import leat

ROUNDS = 30


class Interrupt(Exception):
    """Raised by the handler."""


@pytest.fixture(autouse=True)
def interrupts():
    def handler(_number, _frame):
        raise Interrupt

    before = signal.signal(signal.SIGUSR1, handler)
    yield
    signal.signal(signal.SIGUSR1, before)


def publish_and_interrupt(publisher, values):
    """While this thread has the GIL, so the main thread finds the records and the signal."""
    time.sleep(0.002)
    publisher.publish_batch(values)
    os.kill(os.getpid(), signal.SIGUSR1)


def interrupted(publisher, values, call):
    """What the call returned; None: the handler ended it."""
    got = None
    sender = threading.Thread(target=publish_and_interrupt, args=(publisher, values))
    try:
        sender.start()
        got = call()
        sender.join()
        time.sleep(10)  # The signal came after the call.
    except Interrupt:
        pass
    sender.join()
    return got


def into(subscriber):
    array = bytearray(20)
    rows = subscriber.read_into(memoryview(array).cast("B", (4, 5)), None)
    return [bytes(array[5 * row:5 * row + 5]) for row in range(rows)]


def viewed(subscriber):
    with subscriber.view() as batch:
        return [bytes(one.value) for one in batch]


# Each returns a list of values.
CALLS = {
    "receive": lambda one: [one.receive().value],
    "next": lambda one: [next(one).value],
    "receive_batch": lambda one: [entry.value for entry in one.receive_batch()],
    "read_values": lambda one: one.read_values(timeout=None),
    "read_into": into,
    "view": viewed,
}


@pytest.mark.parametrize("kind", [*CALLS, "member.receive", "member.receive_batch"])
def test_nothing_is_lost(topic, publisher, subscriber, kind):
    reader = topic.group("group", in_flight=65536).join() if kind.startswith("member.") else subscriber
    call = CALLS[kind.removeprefix("member.")]
    wanted, got, ended = [], [], 0
    for i in range(ROUNDS):
        values = [b"%04d-" % (2 * i), b"%04d-" % (2 * i + 1)]
        wanted += values
        values = interrupted(publisher, values, lambda: call(reader))
        ended += values is None
        got += values or []
        while len(got) < len(wanted):
            got += call(reader)
    assert got == wanted
    assert ended > 0
    if reader is not subscriber:
        assert reader.acknowledge_all() == len(wanted)


def has_kept(reader):
    """Whether it has: the signal may also have come before it took the record. Otherwise it is done with all."""
    if isinstance(reader, leat.Member):
        if reader.in_flight():
            return True
        reader.acknowledge(reader.receive_batch(timeout=5))
        return False
    try:
        reader.view(timeout=0).release()
    except ValueError:
        return True
    return False


def kept(publisher, reader):
    """Interrupts it until it keeps a record; the value."""
    for i in range(100):
        value = b"kept %d" % i
        got = interrupted(publisher, [value], reader.receive)
        if got is None and has_kept(reader):
            return value
        if got is not None and isinstance(reader, leat.Member):
            reader.acknowledge(got)
    pytest.fail("no record came with a signal")


def test_what_is_kept_counts_everywhere(topic, publisher, subscriber):
    value = kept(publisher, subscriber)
    other = topic.subscriber()
    subscriber.wait(0)
    assert leat.wait_any([other, subscriber], 0) == 1
    offset = subscriber.offset()
    with pytest.raises(ValueError, match="receive"):
        subscriber.view(timeout=0)
    publisher.publish(b"later")
    assert [one.value for one in subscriber.poll()] == [value]
    assert subscriber.receive(0).value == b"later" and subscriber.offset() == offset + 2


def test_a_child_does_not_get_what_its_parent_kept(topic, publisher, subscriber):
    value = kept(publisher, subscriber)
    child = os.fork()
    if child == 0:
        try:
            subscriber.receive(0)
        except leat.Forked:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert subscriber.receive(0).value == value


def test_what_a_member_kept_is_not_acknowledged_unseen(topic, publisher):
    group = topic.group("group")
    member = group.join()
    value = kept(publisher, member)
    member.wait(0)
    member.acknowledge_all()
    again = member.receive(5)
    assert (again.value, again.deliveries) == (value, 2)
    assert member.acknowledge(again) == 1 and member.in_flight() == 0
    assert group.released() == int(value.split()[1]) + 1
