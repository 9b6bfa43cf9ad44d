"""asyncio: tasks wait without blocking the loop, and a cancelled one loses no record.
If these failed, one waiting task would stop all others, or a timeout would cost the record that came just then."""
import asyncio
import gc
import random
import sys
from pathlib import Path

import pytest

import leat


def test_receive(topic, publisher, subscriber):
    async def main():
        publisher.publish(b"one")
        assert (await subscriber.receive_async()).value == b"one"
        with pytest.raises(leat.Timeout):
            await subscriber.receive_async(0)
        with pytest.raises(leat.Timeout):
            await subscriber.receive_batch_async(timeout=0.05)
        waiting = asyncio.create_task(subscriber.receive_batch_async(10, 30))
        await asyncio.sleep(0.05)
        publisher.publish_batch([b"two", b"three"])
        assert [one.value for one in await waiting] == [b"two", b"three"]

    asyncio.run(main())


def test_iterating(topic, publisher, subscriber):
    async def publish():
        for i in range(100):
            publisher.publish(b"%d" % i)
            if i % 10 == 0:
                await asyncio.sleep(0.001)
        subscriber.stop()

    async def main():
        task = asyncio.create_task(publish())
        values = [one.value async for one in subscriber]
        await task
        return values

    assert asyncio.run(main()) == [b"%d" % i for i in range(100)]


def test_members(topic, publisher):
    group = topic.group("group")

    async def work(member):
        done = 0
        try:
            async for delivery in member:
                await asyncio.sleep(0)
                done += member.acknowledge(delivery)
        except leat.Closed:
            pass
        return done

    async def main():
        members = [group.join() for _ in range(3)]
        tasks = [asyncio.create_task(work(member)) for member in members]
        for i in range(100):
            publisher.publish(b"%d" % i)
            await asyncio.sleep(0)
        while group.released() < 100:
            await asyncio.sleep(0.01)
        for member in members:
            member.stop()
        return sum(await asyncio.gather(*tasks))

    assert asyncio.run(main()) == 100


@pytest.mark.parametrize("kind", ["subscriber", "member"])
def test_cancelling_loses_nothing(topic, publisher, subscriber, kind):
    reader = subscriber if kind == "subscriber" else topic.group("group", in_flight=65536).join()
    count = 400
    chance = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    got = []

    async def read():
        while True:
            got.append(int((await reader.receive_async()).value))

    async def publish():
        for i in range(count):
            publisher.publish(b"%d" % i)
            await asyncio.sleep(chance.choice([0, 0, 0.0005]))

    async def main():
        publishing = asyncio.create_task(publish())
        while len(got) < count:
            task = asyncio.create_task(read())
            await asyncio.sleep(chance.choice([0, 0.0003, 0.001]))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            try:
                got.append(int((await asyncio.wait_for(reader.receive_async(), 0.0005)).value))
            except asyncio.TimeoutError:
                pass
        await publishing

    asyncio.run(main())
    assert got == list(range(count))


def test_stop_and_close_end_a_wait(topic):
    async def main():
        for act in ("stop", "close"):
            one = topic.subscriber()
            task = asyncio.create_task(one.receive_async())
            await asyncio.sleep(0.02)
            with pytest.raises(leat.Busy):
                await one.receive_async(1)
            getattr(one, act)()
            with pytest.raises(leat.Stopped):
                await task
            assert one.closed == (act == "close")
            if act == "close":
                with pytest.raises(ValueError):
                    await one.receive_async()

    asyncio.run(main())
    assert [one["role"] for one in topic.info()["participants"]] in ([], ["subscriber"])


def test_a_deleted_topic(topic, subscriber):
    async def main():
        task = asyncio.create_task(subscriber.receive_async())
        await asyncio.sleep(0.02)
        leat.Topic.delete("topic", force=True)
        with pytest.raises(leat.Deleted):
            await task

    asyncio.run(main())


def test_an_interrupt_between_any_two_lines(publisher, subscriber):
    """The next wait finds no trace of the one that a signal's handler ended.

    Python runs handlers when it calls a function of Python, and after calls: neither at a `try:`, nor before a line
    calls C.
    """
    source = Path(leat._async.__file__).read_text().splitlines()
    spared = [number for number, line in enumerate(source, 1)
              if line.strip().startswith(("try:", "handle._end_wait("))]
    assert spared

    class Interrupt(KeyboardInterrupt):
        pass

    def interrupt_at(count):
        """Whether there were so many lines."""
        left = count

        def trace(frame, event, _arg):
            nonlocal left
            if not frame.f_code.co_filename.endswith("_async.py"):
                return None
            left -= event == "line" and frame.f_lineno not in spared
            if left == 0:
                raise Interrupt
            return trace

        loop = asyncio.new_event_loop()
        task = loop.create_task(subscriber.receive_async(60))
        loop.call_soon(publisher.publish, b"x")  # When the task waits.
        sys.settrace(trace)
        try:
            loop.run_until_complete(task)
        except Interrupt:
            pass
        finally:
            sys.settrace(None)
            loop.close()
        return left <= 0

    lines = 1
    while interrupt_at(lines):
        lines += 1
        gc.collect()  # A task whose loop was closed goes on waiting until it is dropped.
        subscriber.poll()
    assert lines > 20


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("-inf")])
def test_wrong_timeouts(subscriber, timeout):
    with pytest.raises(ValueError, match="timeout must be seconds from 0 on"):
        asyncio.run(subscriber.receive_async(timeout))


def test_wrong_arguments(subscriber):
    async def main():
        with pytest.raises(TypeError):
            await subscriber.receive_async(1, 2)
        with pytest.raises(TypeError):
            await subscriber.receive_async(unknown=1)
        with pytest.raises(TypeError):
            await subscriber.receive_async("1")

    asyncio.run(main())
