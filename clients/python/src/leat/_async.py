"""What subscribers and members do for asyncio, with the descriptor that is readable when there is something.

A record is taken only in the step that returns it, so a task that is cancelled while it waits has taken none.
"""
import asyncio

from ._leat import Member, Stopped, Timeout


async def receive(reader, timeout=None):
    batch = await receive_batch(reader, 1, timeout)
    return batch[0]


async def receive_batch(reader, limit=64, timeout=None):
    if timeout is not None and not timeout >= 0:  # Also of NaN.
        raise ValueError("seconds must not be negative")
    loop = asyncio.get_running_loop()
    deadline = None if timeout is None else loop.time() + timeout
    while True:
        batch = _take(reader, limit)
        if batch:
            return batch
        if reader.is_stopped():
            raise Stopped("stopped on request")
        if deadline is not None and loop.time() >= deadline:
            raise Timeout("the deadline passed")
        await _readable(reader, loop, deadline)


async def next_entry(reader):
    try:
        return await receive(reader)
    except Stopped:
        raise StopAsyncIteration from None


def _take(reader, limit):
    if not isinstance(reader, Member):
        return reader.poll(limit)
    try:
        return reader.receive_batch(limit, 0)
    except Timeout:
        return []


async def _readable(reader, loop, deadline):
    """Returns when the reader's descriptor is readable, or the deadline has passed."""
    descriptor = reader.fileno()
    woken = loop.create_future()

    def wake():
        if not woken.done():
            woken.set_result(None)

    # A signal handler may raise anywhere, so each begins within what ends it.
    timer = None
    try:
        reader._begin_wait(woken)
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
        reader._end_wait(woken)
    if reader.closed:
        raise Stopped("stopped on request")
