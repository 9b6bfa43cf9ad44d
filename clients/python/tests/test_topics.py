"""Topics: create, open, delete, list, what they tell; and the errors' names.
If these failed, a program could not find, make or describe topics, or would catch an error of another name."""
import csv
import pathlib
import threading
import time

import pytest

import leat
from conftest import ROOT


def test_creates_and_opens_and_lists_and_deletes():
    with leat.Topic.create("one", capacity_bytes=1 << 20, partitions=2) as one:
        assert (one.name, one.partitions) == ("one", 2)
        assert one.max_record_size > 10_000
    assert leat.Topic.open("one").partitions == 2
    leat.Topic.open_or_create("two").close()
    assert leat.Topic.open_or_create("one", partitions=5).partitions == 2
    assert leat.Topic.list() == ["one", "two"]
    leat.Topic.delete("one")
    assert leat.Topic.list() == ["two"]
    with pytest.raises(leat.NotFound, match="no such topic"):
        leat.Topic.open("one")
    with pytest.raises(leat.NotFound):
        leat.Topic.delete("one")


def test_other_directories(tmp_path):
    leat.Topic.create("here", directory=tmp_path).close()
    assert leat.Topic.list(directory=str(tmp_path)) == ["here"]
    assert leat.Topic.list() == []
    leat.Topic.open("here", directory=tmp_path).close()
    leat.Topic.delete("here", directory=pathlib.Path(tmp_path), force=True)


def test_a_topic_exists_once(topic):
    with pytest.raises(leat.Exists) as caught:
        leat.Topic.create("topic")
    assert (caught.value.code, caught.value.name, caught.value.detail) == (3, "exists", 0)
    assert isinstance(caught.value, leat.Error)


@pytest.mark.parametrize("name, error", [
    ("", leat.InvalidArgument), ("a/b", leat.InvalidArgument), ("x" * 201, leat.InvalidArgument),
    ("a\0b", leat.InvalidArgument), ("tcp://host/topic", leat.Unsupported), (b"bytes", TypeError),
    (7, TypeError)])
def test_refuses_names(name, error):
    with pytest.raises(error):
        leat.Topic.create(name)
    with pytest.raises(error):
        leat.Topic.open(name)


@pytest.mark.parametrize("options, error", [
    ({"policy": "never"}, ValueError), ({"policy": 1}, TypeError), ({"partitions": -1}, ValueError),
    ({"partitions": 1 << 40}, ValueError), ({"partitions": "2"}, TypeError), ({"unknown": 1}, TypeError),
    ({"evict_after": -1}, ValueError), ({"evict_after": "1"}, TypeError),
    ({"capacity_bytes": 1 << 64}, ValueError), ({"capacity_bytes": 1 << 62}, leat.InvalidArgument),
    ({"mode": 0o100}, leat.InvalidArgument), ({"directory": 5}, TypeError)])
def test_refuses_options(options, error):
    with pytest.raises(error):
        leat.Topic.create("topic", **options)


def test_waits_for_a_topic_to_be_created():
    timer = threading.Timer(0.2, lambda: leat.Topic.create("late").close())
    timer.start()
    leat.Topic.open("late", timeout=30).close()
    timer.join()
    begin = time.monotonic()
    with pytest.raises(leat.NotFound):
        leat.Topic.open("never", timeout=0.1)
    assert time.monotonic() - begin >= 0.1


def test_info_is_a_dict(topic, publisher, subscriber):
    publisher.publish(b"value")
    info = topic.info()
    assert info["name"] == "topic"
    assert info["partitions"][0]["end"] == 1
    assert {one["role"] for one in info["participants"]} == {"publisher", "subscriber"}


def test_a_topic_with_participants_is_deleted_by_force(topic, publisher, subscriber):
    with pytest.raises(leat.Busy):
        leat.Topic.delete("topic")
    leat.Topic.delete("topic", force=True)
    with pytest.raises(leat.Deleted):
        subscriber.receive()


def test_grows_and_shrinks():
    topic = leat.Topic.create("grow", policy="grow", capacity_bytes=1 << 20, max_capacity_bytes=4 << 20)
    topic.set_max_capacity(2 << 20)
    with pytest.raises(leat.InvalidArgument):
        topic.set_max_capacity(1 << 10)
    assert topic.shrink() == 0
    with pytest.raises(leat.NeedsGrowing):
        leat.Topic.create("fixed").shrink()


def test_durable_topics():
    with leat.Topic.create("kept", durable="fsync") as topic, topic.publisher() as publisher:
        offset = publisher.publish(b"one", timeout=30)
        assert publisher.publish_batch([b"two", b"three"], timeout=30) == offset + 1
        assert publisher.last_offset() == offset + 2
        publisher.request_sync()
        publisher.flush(timeout=30)
        assert publisher.durable_offset() == 3
        assert publisher.durable_fd() >= 0
        topic.repair(timeout=30)
        with topic.subscriber(from_="beginning", read="durable") as subscriber:
            assert subscriber.read_values() == [b"one", b"two", b"three"]
        assert topic.info()["durable"]


def test_durability_is_for_durable_topics(topic, publisher):
    assert publisher.durable_offset() == 0
    assert publisher.last_offset() is None
    for call in (publisher.flush, publisher.request_sync, publisher.durable_fd, topic.repair):
        with pytest.raises(leat.NeedsDurable):
            call()
    with pytest.raises(leat.NeedsDurable):
        topic.publisher(acknowledge="durable")


def test_every_error_has_its_class_and_constant():
    with open(ROOT / "spec" / "errors.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["number"] != "0"]
    for row in rows:
        name = "".join(word.capitalize() for word in row["name"].split("_"))
        kind = getattr(leat, name)
        assert (kind.code, kind.name) == (int(row["number"]), row["name"])
        assert issubclass(kind, leat.Error)
        assert kind.__doc__.startswith(row["sentence"][:20])
        assert getattr(leat, "ERR_" + row["name"].upper()) == kind.code
    assert sum(isinstance(one, type) and issubclass(one, leat.Error) for one in vars(leat).values()) == len(rows) + 1
