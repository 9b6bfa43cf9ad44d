"""A publisher that only its own thread could make room for says so.
If these failed, such a program would hang without a word; or one whose other threads read would fail."""
import subprocess
import sys
import threading

import pytest

import leat

# In a process of its own: other tests may have left threads.
PROGRAM = """
import asyncio, leat
topic = leat.Topic.create("topic", capacity_bytes=1 << 16)
publisher = topic.publisher()


def publish(call):
    try:
        while True:
            call(bytes(1000))
    except leat.WouldDeadlock:
        return True


def with_reader(reader, poll):
    if poll:
        poll(reader)
    assert publish(publisher.publish) and publish(lambda value: publisher.publish_batch([value] * 2))
    assert publish(lambda value: publisher.claim(1000).commit())
    reader.close()


with_reader(topic.subscriber(), lambda one: one.poll())
publisher.publish(b"")
with_reader(topic.group("group", from_="beginning").join(), lambda one: one.receive_batch())
topic.delete_group("group")


async def main():
    subscriber = topic.subscriber()

    async def read():
        async for _ in subscriber:
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0.01)
    assert publish(publisher.publish)
    task.cancel()


asyncio.run(main())
keep = topic.subscriber()
assert publish(publisher.publish)  # Nobody has read it: after a second.
print("done")
"""


def test_the_only_thread_of_a_process(directory):
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "done\n", ran.stderr


def test_another_thread_may_read(topic):
    subscriber, publisher = topic.subscriber(), topic.publisher()
    subscriber.poll()
    with pytest.raises(leat.Full):
        while True:
            publisher.publish(bytes(50_000), timeout=0)

    def read():
        with pytest.raises(leat.Timeout):
            topic.subscriber().receive(0.1)
        while subscriber.poll():
            pass

    thread = threading.Thread(target=read)
    thread.start()
    publisher.publish(bytes(50_000), timeout=30)
    thread.join()


def test_stop_ends_a_publisher_that_waits_for_its_own_thread(topic):
    subscriber, publisher = topic.subscriber(), topic.publisher()
    subscriber.poll()
    with pytest.raises(leat.Full):
        while True:
            publisher.publish(bytes(50_000), timeout=0)
    with pytest.raises(leat.Timeout):
        with_a_timer(lambda: None, lambda: publisher.publish(bytes(50_000), timeout=0.02))
    with pytest.raises(leat.Stopped):
        with_a_timer(publisher.stop, lambda: publisher.publish(bytes(50_000)))


def with_a_timer(act, call):
    timer = threading.Timer(0.05, act)
    timer.start()
    try:
        call()
    finally:
        timer.join()
