"""Signals end waits, whenever they come; other waits go on, use no CPU, and let other threads run."""
import os
import random
import resource
import signal
import threading
import time

import pytest

import leat
from conftest import THOROUGH

INTERRUPTS = 200 if THOROUGH else 24


class Interrupt(Exception):
    """Raised by the handler."""


@pytest.fixture
def interrupts():
    def handler(_number, _frame):
        raise Interrupt

    before = signal.signal(signal.SIGUSR1, handler)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def waits(topic, subscriber):
    """Every call that waits, for ever."""
    full = leat.Topic.create("full", capacity_bytes=1 << 16)
    keeping, publisher = full.subscriber(), full.publisher()
    with pytest.raises(leat.Full):
        while True:
            publisher.publish(b"x" * 1000, timeout=0)
    member = topic.group("group").join()
    with pytest.raises(leat.Timeout):
        member.receive(0)
    calls = [subscriber.receive, subscriber.wait, subscriber.view, lambda: leat.wait_any([subscriber]),
             lambda: subscriber.receive(600), lambda: publisher.publish(b"x" * 1000),
             lambda: publisher.publish_batch([b"x" * 1000]), lambda: publisher.claim(1000), member.receive,
             member.wait, lambda: leat.Topic.open("never", timeout=600)]
    yield calls
    keeping.close()


def test_interrupts_at_random_moments(interrupts, waits):
    chance = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    slowest = 0.0
    for i in range(INTERRUPTS):
        call = waits[i % len(waits)]
        delay = chance.choice([0, chance.random() * 2e-4, chance.random() * 0.12])
        sent = []

        def send(delay=delay, sent=sent):
            time.sleep(delay)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGUSR1)

        sender = threading.Thread(target=send)
        try:
            sender.start()
            call()
            pytest.fail("it returned")
        except Interrupt:
            slowest = max(slowest, time.monotonic() - sent[0])
        sender.join()
    print(f"slowest: {slowest * 1000:.1f} ms")
    assert slowest < 0.1 if THOROUGH else slowest < 2  # A busy machine may be slow, an ignored signal is forever.


def test_a_wait_that_spins_has_an_end(interrupts, topic):
    with topic.subscriber(spin=3600) as subscriber, topic.group("group").join(spin=3600) as member:
        for call in (subscriber.receive, subscriber.wait, member.receive):
            with pytest.raises(leat.Timeout):
                call(0.05)
            timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
            timer.start()
            with pytest.raises(Interrupt):
                call()
            timer.join()


def test_ctrl_c(subscriber):
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        subscriber.receive()
    timer.join()


def test_a_wait_goes_on_after_a_handler_that_returns(topic, publisher, subscriber):
    handled = []

    def handler(*_):
        handled.append(subscriber.closed)
        with pytest.raises(leat.Busy):
            subscriber.poll()
        if len(handled) == 3:
            topic.publisher().publish(b"now")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        threads = [threading.Timer(0.05 * i, os.kill, (os.getpid(), signal.SIGUSR1)) for i in range(1, 4)]
        for thread in threads:
            thread.start()
        assert subscriber.receive(60).value == b"now"
        for thread in threads:
            thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert handled == [False] * 3


def test_a_handler_that_stops_or_closes(topic, subscriber):
    other = topic.subscriber()
    for one, act in ((subscriber, subscriber.stop), (other, other.close)):
        before = signal.signal(signal.SIGUSR1, lambda *_, act=act: act())
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        with pytest.raises(leat.Stopped):
            one.receive(60)
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert other.closed and not subscriber.closed


def test_an_interrupt_leaves_everything_usable(interrupts, publisher, subscriber):
    for i in range(5):
        timer = threading.Timer(0.01 * i, os.kill, (os.getpid(), signal.SIGUSR1))
        with pytest.raises(Interrupt):
            timer.start()
            subscriber.receive()
        timer.join()
        publisher.publish(b"%d" % i)
        assert subscriber.receive(5).value == b"%d" % i


def test_an_idle_wait_uses_no_cpu(subscriber):
    seconds = 10 if THOROUGH else 2
    before = resource.getrusage(resource.RUSAGE_SELF)
    with pytest.raises(leat.Timeout):
        subscriber.receive(seconds)
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{used / seconds:.3%} CPU")
    assert used / seconds < (0.001 if THOROUGH else 0.02)
