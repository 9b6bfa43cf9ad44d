"""Consumer groups.
If these failed, a record that nobody finished would be lost instead of going to another member, or a member of a
deleted group would wait for ever."""
import time

import pytest

import leat


@pytest.fixture
def group(topic, publisher):
    publisher.publish_batch([b"%d" % i for i in range(10)])
    with topic.group("group", from_="beginning", max_deliveries=3) as group:
        yield group


def test_open_find_and_delete(topic):
    assert topic.group("one", from_=leat.From.offset(0)).was_created
    assert not topic.group("one").was_created
    assert topic.find_group("one").name == "one"
    topic.group("two", by_key=True, mode="at_most_once", members=2, in_flight=5, lease=1.5)
    assert topic.group_names() == ["one", "two"]
    topic.delete_group("two")
    with pytest.raises(leat.NotFound):
        topic.find_group("two")
    with topic.find_group("one").join():
        with pytest.raises(leat.Busy):
            topic.delete_group("one")
        topic.delete_group("one", force=True)
    for wrong in (5, b"one", None):
        with pytest.raises(TypeError):
            topic.group(wrong)
        with pytest.raises(TypeError):
            topic.find_group(wrong)
    with pytest.raises(ValueError):
        topic.group("x", mode="never")
    with pytest.raises(leat.InvalidArgument):
        topic.group("a b")


def test_receive_and_acknowledge(group):
    member = group.join(name="me")
    first = member.receive(1)
    assert isinstance(first, leat.Delivery) and isinstance(first, leat.Record)
    assert (first.value, first.offset, first.deliveries) == (b"0", 0, 1)
    batch = member.receive_batch(4, timeout=1)
    assert [one.value for one in batch] == [b"1", b"2", b"3", b"4"]
    assert member.in_flight() >= 5
    assert member.acknowledge(first) == 1
    with pytest.raises(leat.NotInFlight):
        member.acknowledge(first)
    assert member.acknowledge(iter([first, batch[1]])) == 1
    assert member.acknowledge([]) == 0
    with pytest.raises(leat.NotInFlight):
        member.acknowledge([first, batch[1]])
    assert member.acknowledge_up_to(batch[2]) == 2
    assert member.acknowledge_all() == 1
    info = group.info()
    assert info["members"][0]["name"] == "me"
    assert (info["lag"], info["max_deliveries"], info["taking"]) == (5, 3, "ok")
    assert group.dead_letter_topic


def test_requeue(group):
    member = group.join()
    one = member.receive(1)
    member.requeue(one)
    assert (again := member.receive(1)).offset == one.offset
    assert again.deliveries == 2
    member.requeue(again, delay=0.2)
    begin = time.monotonic()
    others = member.receive_batch(100, timeout=1)
    assert one.offset not in [other.offset for other in others]
    assert member.receive(10).deliveries == 3
    assert time.monotonic() - begin >= 0.1
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError):
            member.requeue(others[0], wrong)


def test_deliveries_of_others(group):
    one, two = group.join(), group.join()
    delivery = one.receive(1)
    for call in (two.acknowledge, two.acknowledge_up_to, two.requeue, lambda it: two.acknowledge([it])):
        with pytest.raises(leat.NotInFlight):
            call(delivery)
    one.close()
    with pytest.raises(leat.NotInFlight):
        two.acknowledge(delivery)
    assert two.receive(1).offset == delivery.offset
    for wrong in (None, 5, b"x", [None], [b"x"]):
        with pytest.raises(TypeError):
            two.acknowledge(wrong)
    for call in (two.acknowledge_up_to, two.requeue):
        with pytest.raises(TypeError):
            call([delivery])


def test_position(group):
    assert group.position() == 0
    group.seek(leat.From.offset(7))
    assert group.position(0) == 7
    assert group.join().receive(1).offset == 7
    group.seek("end", partition=0)
    assert group.position() == 10
    assert group.released() <= 10
    for call in (group.position, group.released, lambda partition: group.seek("end", partition)):
        with pytest.raises(leat.InvalidArgument):
            call(5)
    with pytest.raises(leat.InvalidArgument):
        group.seek(leat.From.offset(99))


def test_waits(group):
    member = group.join()
    member.wait(1)
    member.acknowledge(member.receive_batch(10))
    for call in (member.wait, member.receive, lambda timeout: member.receive_batch(5, timeout)):
        with pytest.raises(leat.Timeout):
            call(0)
        with pytest.raises(leat.Timeout):
            call(0.06)
    member.stop()
    with pytest.raises(leat.Stopped):
        member.receive()
    assert list(member) == []
    member.resume()
    assert member.fileno() >= 0


def test_a_deleted_group(topic, group):
    member = group.join()
    delivery = member.receive(1)
    topic.delete_group("group", force=True)
    with pytest.raises(leat.Closed):
        member.acknowledge(delivery)
    with pytest.raises(leat.Closed):
        member.receive()
