"""What publishers, subscribers and members do for asyncio, with descriptors that are readable when there is something.

A record is taken, or published, only in the step that returns, so a task that is cancelled while it waits has taken or
published none.
"""
import asyncio
import contextlib

from ._leat import Member, NotDurable, Stopped, Timeout, WouldDeadlock

# Seconds. Long enough for the library to tell a topic that waits for room from one that never does, which is Full.
_HARDLY = 1e-9


async def receive(reader, timeout=None):
    batch = await receive_batch(reader, 1, timeout)
    return batch[0]


async def receive_batch(reader, limit=64, timeout=None):
    loop = asyncio.get_running_loop()
    deadline = _deadline(loop, timeout)
    while True:
        batch = _take(reader, limit)
        if batch:
            return batch
        if reader.is_stopped():
            raise Stopped("stopped on request")
        if deadline is not None and loop.time() >= deadline:
            raise Timeout("the deadline passed")
        await _readable(reader, reader.fileno(), loop, deadline)


async def next_entry(reader):
    try:
        return await receive(reader)
    except Stopped:
        raise StopAsyncIteration from None


async def publish(publisher, value, key=None, headers=None, partition=None, timeout=None):
    def attempt(seconds):
        return publisher.publish(value, key, headers, partition, seconds)

    return await _publish(publisher, attempt, (partition, key), 1, timeout)


async def publish_batch(publisher, values, partition=None, timeout=None):
    if not isinstance(values, (str, bytes, bytearray, memoryview)):  # Which are refused.
        values = tuple(values)

    def attempt(seconds):
        return publisher.publish_batch(values, partition, seconds)

    return await _publish(publisher, attempt, (partition, None), len(values), timeout)


async def flush(publisher, timeout=None):
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout_at(_deadline(loop, timeout)), _turn(publisher, loop):
            await _durable(publisher, loop)
    except TimeoutError:
        raise _not_durable() from None


async def _publish(publisher, attempt, place, count, timeout):
    loop = asyncio.get_running_loop()
    deadline = _deadline(loop, timeout)
    if timeout == 0:
        return attempt(0)
    is_published = False
    try:
        async with asyncio.timeout_at(deadline), _turn(publisher, loop):
            while True:
                try:
                    return attempt(_HARDLY)
                except (Timeout, WouldDeadlock):
                    if publisher.is_stopped():
                        raise Stopped("stopped on request") from None
                except NotDurable as error:
                    if error.detail != 0 or publisher.is_stopped():
                        raise
                    is_published = True
                if is_published:
                    offset = publisher.last_offset() - (count - 1)
                    await _durable(publisher, loop)
                    return offset
                await _readable(publisher, publisher._room_fd(*place), loop, None)
    except TimeoutError:
        raise _not_durable() if is_published else Timeout("the deadline passed") from None


async def _durable(publisher, loop):
    publisher.request_sync()
    descriptor = publisher.durable_fd()
    while True:
        publisher.durable_offset()  # From here on the descriptor says whether it has moved.
        try:
            return publisher.flush(0)
        except NotDurable as error:
            if error.detail != 0 or publisher.is_stopped():
                raise
        await _readable(publisher, descriptor, loop, None)


_turns = {}  # By publisher and loop: a lock, and how many tasks hold or want it.


@contextlib.asynccontextmanager
async def _turn(publisher, loop):
    """One task at a time waits for a publisher, in the order of their calls."""
    turn = _turns.setdefault((publisher, loop), [asyncio.Lock(), 0])
    turn[1] += 1
    try:
        async with turn[0]:
            yield
    finally:
        turn[1] -= 1
        if turn[1] == 0:
            del _turns[publisher, loop]


def _deadline(loop, timeout):
    if timeout is None:
        return None
    if not timeout >= 0:  # Also of NaN.
        raise ValueError("timeout must be seconds from 0 on, or None")
    return loop.time() + timeout


def _not_durable():
    return NotDurable("published, but not on stable storage in time")


def _take(reader, limit):
    if not isinstance(reader, Member):
        return reader.poll(limit)
    try:
        return reader.receive_batch(limit, 0)
    except Timeout:
        return []


async def _readable(handle, descriptor, loop, deadline):
    """Returns when the descriptor of the handle is readable, or the deadline has passed."""
    woken = loop.create_future()

    def wake():
        if not woken.done():
            woken.set_result(None)

    # A signal handler may raise anywhere, so each begins within what ends it.
    timer = None
    try:
        handle._begin_wait(woken)
        try:
            if deadline is not None:
                timer = loop.call_at(deadline, wake)
            loop.add_reader(descriptor, wake)
            await woken
        finally:
            loop.remove_reader(descriptor)
            if timer is not None:
                timer.cancel()
    finally:
        handle._end_wait(woken)
    if handle.closed:
        raise Stopped("stopped on request")
