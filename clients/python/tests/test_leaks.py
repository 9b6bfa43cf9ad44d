"""Nothing grows: memory, threads, descriptors.
If these failed, a service in Python would be killed for its memory, or could open no more files, after some days."""
import ctypes
import gc
import os
import sys
import threading

import pytest

import leat
from conftest import SANITIZED

pytestmark = pytest.mark.skipif(SANITIZED, reason="AddressSanitizer keeps what was freed")

ROUNDS = 1_000
PARTS = 4
LEAST_LEAK = 100  # Bytes in a round.


class Mallinfo2(ctypes.Structure):
    """Of malloc.h."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                     "fsmblks", "uordblks", "fordblks", "keepcost")]


def allocated():
    """Bytes that malloc gave out, and blocks that Python did: exact, where pages that are resident are not."""
    function = ctypes.CDLL(None).mallinfo2
    function.restype = Mallinfo2
    gc.collect()
    info = function()
    return info.uordblks + info.hblkhd, sys.getallocatedblocks()
OPENED = 10_000


def resident_kib():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def counts():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), threading.active_count()


def does_not_grow(one_round, rounds=ROUNDS, most_kib=3000):
    for _ in range(rounds // 10):
        one_round()
    before, memory, parts = counts(), resident_kib(), []
    for _ in range(PARTS):
        then = allocated()
        for _ in range(rounds // PARTS):
            one_round()
        parts.append([(now - was) / (rounds // PARTS) for now, was in zip(allocated(), then)])
    assert counts() == before
    assert resident_kib() - memory < most_kib
    # What is leaked grows in each part; what is kept for later use does not.
    size, blocks = map(min, zip(*parts))
    assert size < LEAST_LEAK and blocks < 0.5, parts


def test_open_and_close(topic):
    """Each kind of handle, closed and dropped: twelve in a round."""
    topic.group("group").close()

    def one_round():
        with leat.Topic.open("topic") as own, own.subscriber(), own.find_group("group") as group, group.join(), \
             own.publisher() as publisher, publisher.claim(10):
            pass
        own = leat.Topic.open("topic")
        member, claim = own.find_group("group").join(), own.publisher().claim(10)
        own.subscriber(), member, claim  # Dropped.

    does_not_grow(one_round, OPENED // 12 + 1)


def test_descriptors_to_wait_for(topic):
    def one_round():
        with topic.subscriber() as subscriber:
            subscriber.fileno()

    does_not_grow(one_round, ROUNDS // 5)


def test_records_and_errors(topic, publisher, subscriber):
    member = topic.group("group").join()
    batch = [leat.NewRecord(b"x" * 1000, b"key", {b"a": b"b"}), b"plain", bytearray(b"array")]

    def one_round():
        publisher.publish(b"x" * 1000, b"key", {b"name": b"value" * 10})
        publisher.publish_batch(batch)
        with publisher.claim(100) as claim:
            claim.data[:] = bytes(100)
        publisher.claim(10).abort()
        for record in subscriber.poll(3):
            record.value, record.key, record.headers
        with subscriber.view() as view:
            [bytes(one.value) for one in view if isinstance(one, leat.RecordView)]
        subscriber.poll()
        member.acknowledge(member.receive_batch(100))
        for call in (lambda: subscriber.receive(0), lambda: publisher.publish("text"),
                     lambda: publisher.publish_batch([b"x", None]), lambda: topic.subscriber(from_="never"),
                     lambda: topic.find_group("none"), lambda: leat.Topic.create("topic"),
                     lambda: subscriber.read_into(b"")):
            try:
                call()
            except (leat.Error, TypeError, ValueError, BufferError):
                pass
        topic.info(), leat.Topic.list(), topic.group_names(), repr(record)

    does_not_grow(one_round)
