"""Threads that call anything on the same handles, close and replace them meanwhile: only exceptions come of it.
If this failed, a program that shares handles between its threads would crash the interpreter.

Run it with AddressSanitizer too: it has found a claim that was freed while its publisher was being closed.
"""
import collections
import gc
import random
import threading
import time

import pytest

import leat

SECONDS = 3
ALLOWED = (leat.Error, ValueError, BufferError)


class Shared:
    """Handles, and what came of them, which every thread uses and replaces."""

    def __init__(self, topic, group):
        self.topic, self.group = topic, group
        self.claim = self.view = self.kept = None
        self.deliveries = []
        self.renew(random)

    def renew(self, chance):
        self.publisher = self.topic.publisher()
        self.subscriber = self.topic.subscriber(from_=chance.choice(["end", "beginning"]),
                                                gating=chance.random() < 0.5)
        self.member = self.group.join()

    def claim_some(self, chance):
        self.claim = self.publisher.claim(chance.randrange(500), 0.01)

    def claim_within(self, _chance):
        with self.publisher.claim(10, 0.01) as claim:
            claim.data[:] = b"0123456789"

    def view_some(self, chance):
        self.view = self.subscriber.view(chance.randrange(1, 100), 0.001)

    def keep(self, chance):
        kept = chance.choice([self.claim and self.claim.data[1:], self.view and self.view[0], None])
        self.kept = kept.value if isinstance(kept, leat.RecordView) else kept

    def receive(self, chance):
        self.deliveries = self.member.receive_batch(chance.randrange(1, 100), chance.choice([0, 0.002]))

    def requeue(self, chance):
        for one in self.deliveries[:1]:
            self.member.requeue(one, chance.choice([0, 0.01]))

    def close_some(self, chance):
        if chance.random() < 0.1:
            chance.choice([self.publisher, self.subscriber, self.member]).close()

    def renew_some(self, chance):
        if chance.random() < 0.2:
            self.renew(chance)

    def collect(self, chance):
        if chance.random() < 0.05:
            gc.collect()


CALLS = [
    lambda it, chance: it.publisher.publish(b"x" * chance.randrange(2000), timeout=chance.choice([0, 0.001, 0.01])),
    lambda it, chance: it.publisher.publish_batch([b"y"] * 50 + [leat.NewRecord(b"z", b"key")], timeout=0.01),
    lambda it, chance: it.claim and it.claim.commit(),
    lambda it, chance: it.claim and it.claim.abort(),
    lambda it, chance: it.subscriber.poll(chance.randrange(1, 200)),
    lambda it, chance: it.subscriber.receive(chance.choice([0, 0.002])),
    lambda it, chance: it.view and it.view.release(),
    lambda it, chance: it.subscriber.read_values(50),
    lambda it, chance: it.subscriber.read_into(bytearray(200)),
    lambda it, chance: leat.wait_any([it.subscriber], 0.001),
    lambda it, chance: it.member.acknowledge(it.deliveries),
    lambda it, chance: it.member.acknowledge_all(),
    lambda it, chance: (it.topic.info(), it.group.info()),
    Shared.claim_some, Shared.claim_within, Shared.view_some, Shared.keep, Shared.keep, Shared.receive,
    Shared.requeue, Shared.close_some, Shared.renew_some, Shared.collect]


def test_anything_by_anybody():
    topic = leat.Topic.create("stress", capacity_bytes=1 << 18)
    shared = Shared(topic, topic.group("group"))
    seed = random.randrange(1 << 30)
    print("seed", seed)
    end = time.monotonic() + SECONDS
    outcomes = collections.Counter()
    wrong = []

    def run(number):
        chance = random.Random(seed + number)
        while time.monotonic() < end:
            try:
                chance.choice(CALLS)(shared, chance)
                outcomes["fine"] += 1
            except ALLOWED as error:
                outcomes[type(error).__name__] += 1
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(outcomes)
    assert not wrong
    assert outcomes["fine"] > 100
    shared.__dict__.clear()
    gc.collect()
    assert topic.info()["participants"] == []
    with pytest.raises(leat.Timeout):
        topic.subscriber().receive(0)
