"""After fork: what the child inherited raises leat.Forked, closing it harms nobody, and new handles work."""
import os
import threading
import time
import traceback

import pytest

import leat
from conftest import SANITIZED

pytestmark = pytest.mark.skipif(SANITIZED, reason="AddressSanitizer of GCC 12 hangs in children of threads")


def in_child(call):
    """Whether the call raises nothing in a forked child."""
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
    return os.waitpid(child, 0)[1] == 0


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


def test_a_child_does_not_keep_its_parent_alive(topic, subscriber):
    """A publisher that dies within a claim is noticed although a child that it started lives on."""
    read, write = os.pipe()
    dying = os.fork()
    if dying == 0:
        own = leat.Topic.open("topic").publisher()
        own.claim(10)
        claim = own.claim(10)
        if os.fork() == 0:
            os.close(write)
            os.read(read, 1)  # Until the test ends.
            os._exit(0)
        assert claim
        os.kill(os.getpid(), 9)
    os.close(read)
    os.waitpid(dying, 0)
    reasons = []
    while len(reasons) < 2:
        reasons.append(subscriber.receive(20).reason)
    assert reasons == ["aborted", "died"]
    os.close(write)
