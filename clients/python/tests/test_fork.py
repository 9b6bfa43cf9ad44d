"""After fork: what the child inherited raises leat.Forked, closing it harms nobody, and new handles work.
If these failed, a program that uses multiprocessing would end its parent's waits or claims, or hang in its child."""
import os
import select
import signal
import subprocess
import threading
import time
import traceback

import pytest

import leat
from conftest import SANITIZED

pytestmark = pytest.mark.skipif(SANITIZED, reason="AddressSanitizer of GCC 12 hangs in children of threads")


def status_of_child(call):
    """How a forked child ends that makes the call: 0 if that raises nothing."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            call()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def in_child(call):
    return status_of_child(call) == 0


def raises_forked(*calls):
    for call in calls:
        with pytest.raises(leat.Forked):
            call()


def test_inherited_handles(topic, publisher, subscriber):
    group = topic.group("group", from_="beginning")
    member = group.join()
    publisher.publish(b"one")
    delivery = member.receive(5)
    subscriber.fileno()

    def child():
        raises_forked(lambda: publisher.publish(b""), lambda: publisher.publish_batch([b""]),
                      lambda: publisher.claim(1), subscriber.poll, subscriber.receive, subscriber.view,
                      subscriber.read_values, subscriber.wait, subscriber.fileno, member.receive,
                      lambda: member.acknowledge(delivery), member.acknowledge_all, topic.publisher,
                      topic.subscriber, group.join, publisher.stop, subscriber.stop, member.stop)
        for one in (publisher, subscriber, member, group, topic):
            one.close()
            assert one.closed
        with leat.Topic.open("topic") as own, own.publisher() as speaker, own.subscriber() as listener:
            speaker.publish(b"two")
            assert listener.receive(5).value == b"two"

    assert in_child(child)
    assert [one.value for one in subscriber.poll()] == [b"one", b"two"]
    publisher.publish(b"three")
    assert subscriber.receive(5).value == b"three"
    assert member.acknowledge(delivery) == 1
    assert [one.value for one in member.receive_batch(5, 5)] == [b"two", b"three"]


def test_a_claim_and_a_batch(publisher, subscriber):
    publisher.publish(b"one")
    batch = subscriber.view()
    claim = publisher.claim(3)

    def child():
        assert bytes(batch[0].value) == b"one"
        batch.release()
        raises_forked(claim.commit)

    assert in_child(child)
    claim.data[:] = b"two"
    claim.commit()
    batch.release()
    assert subscriber.receive(5).value == b"two"


def test_dropping_everything_in_the_child(topic, publisher, subscriber):
    handles = [topic.publisher(), topic.subscriber(), topic.group("group").join(), publisher.claim(5)]

    def child():
        handles.clear()

    assert in_child(child)
    assert len(topic.info()["participants"]) == 5


def test_a_fork_while_other_threads_wait(topic, subscriber):
    other = topic.subscriber()
    threads = [threading.Thread(target=one.receive) for one in (subscriber, other)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)

    def child():
        raises_forked(subscriber.receive, subscriber.poll)
        subscriber.close()
        other.close()
        assert subscriber.closed
        leat.Topic.open("topic").publisher().publish(b"from the child")

    assert in_child(child)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def start_by_fork(until):
    if os.fork() == 0:
        os.read(until, 1)
        os._exit(0)


def start_by_subprocess(until):
    subprocess.Popen(["cat"], stdin=until, close_fds=False)


def start_by_spawn(until):
    os.posix_spawn("/bin/cat", ["cat"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, until, 0)])


@pytest.mark.parametrize("start", [start_by_fork, start_by_subprocess, start_by_spawn])
def test_a_child_does_not_keep_its_parent_alive(topic, publisher, subscriber, start):
    """Others go on when a process dies within a claim and with records of a group, though a child of it lives on."""
    group = topic.group("group", from_="beginning")
    publisher.publish_batch([b"one", b"two"])
    read, write = os.pipe()

    def dying():
        os.close(write)
        own = leat.Topic.open("topic")
        member, speaker = own.find_group("group").join(), own.publisher()
        held = member.receive_batch(2, 20)
        claim = speaker.claim(10)
        assert len(held) == 2 and claim
        start(read)  # It lives until the test closes the pipe.
        os.kill(os.getpid(), signal.SIGKILL)

    assert status_of_child(dying) == signal.SIGKILL
    os.close(read)
    assert [subscriber.receive(5).value for _ in range(2)] == [b"one", b"two"]
    assert subscriber.receive(5).reason == "died"
    with group.join() as other:
        again = [other.receive(5) for _ in range(2)]
        assert sorted((one.value, one.deliveries) for one in again) == [(b"one", 2), (b"two", 2)]
    poll = select.poll()
    poll.register(write, 0)
    assert poll.poll(0) == []  # It lives on: somebody would read.
    os.close(write)
