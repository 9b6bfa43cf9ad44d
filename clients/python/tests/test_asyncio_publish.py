"""asyncio: publishing waits for room, and for stable storage, without blocking the loop.
If these failed, a full topic would stop all tasks, also the one that makes room; or a cancelled task would publish twice,
or what it was said not to."""
import asyncio
import random

import pytest

import leat

ROOM = 1 << 16


@pytest.fixture
def full():
    """A topic without room, its publisher and the subscriber that holds the room."""
    with leat.Topic.create("full", capacity_bytes=ROOM) as topic, topic.publisher() as publisher:
        with topic.subscriber(from_="beginning") as subscriber:
            fill(publisher)
            yield topic, publisher, subscriber


def fill(publisher, **where):
    for size in (1000, 4):
        with pytest.raises(leat.Full):
            while True:
                publisher.publish(b"fill" * (size // 4), timeout=0, **where)


def make_room(subscriber):
    for _ in range(2):  # The second call shows that what the first one returned is done.
        subscriber.poll(20)


def values(subscriber):
    """All that was published but what fill() did."""
    got = []
    while batch := subscriber.poll(1000):
        got += [one.value for one in batch if not one.value.startswith(b"fill")]
    return got


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_reader_of_the_same_loop_makes_room():
    """Several tasks publish far more than the topic holds; each record comes once, in the order of its task."""
    async def publish(publisher, name, count):
        for i in range(count):
            await publisher.publish_async(b"%s %d" % (name, i) + bytes(500), timeout=60)

    async def main(publisher, subscriber):
        got = {b"a": [], b"b": [], b"c": []}
        tasks = [asyncio.create_task(publish(publisher, name, 300)) for name in got]
        async for record in subscriber:
            name, number = record.value.rstrip(b"\0").split()
            got[name].append(int(number))
            if sum(map(len, got.values())) == 900:
                break
        await asyncio.gather(*tasks)
        return got

    with leat.Topic.create("topic", capacity_bytes=ROOM) as topic:
        got = asyncio.run(main(topic.publisher(), topic.subscriber()))
    assert got == dict.fromkeys([b"a", b"b", b"c"], list(range(300)))


def test_the_loop_goes_on_and_tasks_wait_in_the_order_of_their_calls(full):
    _, publisher, subscriber = full

    async def main():
        tasks = [asyncio.create_task(publisher.publish_async(b"%d" % i * 800)) for i in range(3)]
        tasks.append(asyncio.create_task(publisher.publish_batch_async([b"x", b"y"])))
        for _ in range(10):
            await asyncio.sleep(0.001)
        assert not any(task.done() for task in tasks)
        make_room(subscriber)
        offsets = await asyncio.gather(*tasks)
        assert offsets == [offsets[0] + i for i in range(4)]

    asyncio.run(main())
    assert values(subscriber) == [b"0" * 800, b"1" * 800, b"2" * 800, b"x", b"y"]


def test_a_cancelled_task_has_published_nothing(full):
    _, publisher, subscriber = full

    async def main():
        tasks = [asyncio.create_task(publisher.publish_async(b"%d" % i * 800)) for i in range(4)]
        await asyncio.sleep(0.01)
        await cancelled(tasks[0])  # It waits for room, and the next for its turn.
        await cancelled(tasks[1])
        make_room(subscriber)
        await tasks[2]
        await tasks[3]

    asyncio.run(main())
    assert values(subscriber) == [b"2" * 800, b"3" * 800]


def test_cancelling_at_random_moments(full):
    """What returned is there once, and nothing else is."""
    _, publisher, subscriber = full
    chance = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    done, got = [], []

    async def main():
        for i in range(600):
            value = b"%d" % i + b" " * 800
            task = asyncio.create_task(publisher.publish_async(value))
            await asyncio.sleep(chance.choice([0, 0, 0.0003]))
            if chance.random() < 0.01:
                got.extend(values(subscriber))
            await asyncio.sleep(chance.choice([0, 0, 0.0003]))
            task.cancel()
            try:
                await task
                done.append(value)
            except asyncio.CancelledError:
                pass

    asyncio.run(main())
    got.extend(values(subscriber))
    assert got == done and 0 < len(done) < 600


def test_timeouts_and_topics_that_never_wait(full):
    _, publisher, subscriber = full

    async def main():
        with pytest.raises(leat.Full):
            await publisher.publish_async(b"x" * 800, timeout=0)
        with pytest.raises(leat.Timeout):
            await publisher.publish_async(b"x" * 800, timeout=0.02)
        waiting = asyncio.create_task(publisher.publish_async(b"x" * 800))
        with pytest.raises(leat.Timeout):  # It waits for its turn.
            await publisher.publish_batch_async([b"x" * 800], timeout=0.02)
        await cancelled(waiting)
        with pytest.raises(leat.TooLarge):
            await publisher.publish_async(bytes(ROOM))
        for wrong in (-1, float("nan")):
            with pytest.raises(ValueError, match="timeout"):
                await publisher.publish_async(b"x", timeout=wrong)
        with pytest.raises(TypeError):
            await publisher.publish_batch_async(b"x")
        for options in ({"policy": "fail"}, {"retain_all": True}):
            with leat.Topic.create("never", capacity_bytes=ROOM, **options) as never, never.publisher() as one:
                keeps = never.subscriber()
                fill(one)
                with pytest.raises(leat.Full):
                    await one.publish_async(b"x" * 800)
                keeps.close()
            leat.Topic.delete("never", force=True)

    asyncio.run(main())
    assert values(subscriber) == []


@pytest.mark.parametrize("end", ["stop", "close", "delete"])
def test_what_ends_a_wait(full, end):
    _, publisher, _ = full

    async def main():
        tasks = [asyncio.create_task(publisher.publish_async(b"x" * 800)) for _ in range(2)]
        await asyncio.sleep(0.01)
        if end == "delete":
            leat.Topic.delete("full", force=True)
        else:
            getattr(publisher, end)()
        wanted = leat.Deleted if end == "delete" else leat.Stopped
        with pytest.raises(wanted):
            await tasks[0]
        with pytest.raises(ValueError if end == "close" else wanted):
            await tasks[1]

    asyncio.run(main())
    assert not leat._async._turns


def test_room_in_the_partition_of_the_key():
    async def main(publisher, readers):
        for key in [b"", b"a", b"key", b"key1", b"a longer key", b"\xff" * 9]:
            publisher.publish(b"first", key=key)
            [reader] = [one for one in readers if values(one)]
            fill(publisher, key=key)
            task = asyncio.create_task(publisher.publish_async(b"x" * 800, key=key, timeout=5))
            await asyncio.sleep(0.001)
            assert not task.done()
            while not task.done():
                values(reader)
                await asyncio.sleep(0)
            await task
            values(reader)

    with leat.Topic.create("parts", partitions=3, capacity_bytes=ROOM) as topic:
        asyncio.run(main(topic.publisher(), [topic.subscriber(partition=i) for i in range(3)]))


def test_stable_storage():
    async def main(topic):
        publisher = topic.publisher(acknowledge="durable")
        assert await publisher.publish_async(b"one", timeout=60) == 0
        assert publisher.durable_offset() == 1
        assert await publisher.publish_batch_async([b"two", b"three"]) == 1
        assert await asyncio.gather(*[publisher.publish_async(b"x") for _ in range(3)]) == [3, 4, 5]
        assert publisher.durable_offset() == 6
        other = topic.publisher()
        with other.claim(1) as open_claim:  # Nothing later becomes durable.
            for call in (publisher.publish_async(b"late", timeout=0.05), publisher.flush_async(0.05)):
                with pytest.raises(leat.NotDurable):
                    await call
            task = asyncio.create_task(publisher.publish_async(b"cancelled"))
            await asyncio.sleep(0.01)
            await cancelled(task)
            open_claim.data[:] = b"c"
        await publisher.flush_async()
        return [one.value for one in topic.subscriber(from_="beginning").receive_batch(timeout=10)]

    with leat.Topic.create("kept", durable="fsync") as topic:
        got = asyncio.run(main(topic))
    assert got == [b"one", b"two", b"three", b"x", b"x", b"x", b"c", b"late", b"cancelled"]
    with leat.Topic.create("memory") as topic, pytest.raises(leat.NeedsDurable):
        asyncio.run(topic.publisher().flush_async())
