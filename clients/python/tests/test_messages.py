"""Errors name the topic, the directory, the option, and what would be right.
If these failed, a user would look for the mistake in the wrong place."""
import os

import pytest

import leat

NAME = "a name is 1 to 200 of the characters A-Z a-z 0-9 . _ -"
CASES = [
    (lambda: leat.Topic.create("my orders"), leat.InvalidArgument, "cannot create topic 'my orders': " + NAME),
    (lambda: leat.Topic.open("\n"), leat.InvalidArgument, "cannot open topic '?': " + NAME),
    (lambda: leat.Topic.open("never"), leat.NotFound, "cannot open topic 'never': no such topic in {} (LEAT_DIR)"),
    (lambda: leat.Topic.delete("never", directory="/nowhere"), leat.NotFound,
     "cannot delete topic 'never': no directory /nowhere (an option)"),
    (lambda: leat.Topic.open("lightq://u@h/t"), leat.Unsupported, "cannot open topic 'lightq://u@h/t': this is the address"
     " of a broker, and only topics of this machine can be opened"),
    (lambda: leat.Topic.create("o", partitions=0), leat.InvalidArgument, "partitions must be 1 to 1024, not 0"),
    (lambda: leat.Topic.create("o", participants=5000), leat.InvalidArgument, "participants must be 1 to 4096, not 5000"),
    (lambda: leat.Topic.create("o", mode=0o400), leat.InvalidArgument, "mode must be between 0600 and 0666 (octal), not 0400"),
    (lambda: leat.Topic.create("o", segment_bytes=1 << 31), leat.InvalidArgument, "segment_bytes must be at most"),
    (lambda: leat.Topic.create("o", max_capacity_bytes=1 << 30), leat.InvalidArgument, "need policy grow"),
    (lambda: leat.Topic.create("o", retention=5), leat.InvalidArgument, "need a durable topic"),
    (lambda: leat.Topic.create("o", durable="interval", sync_interval=7200), leat.InvalidArgument,
     "sync_interval must be 0.001 to 3600 seconds, not 7200"),
    (lambda: leat.Topic.create("o", file_group="no such group"), leat.InvalidArgument, "file_group"),
    (lambda: leat.Topic.create("o", policy="never"), ValueError, "policy must be one of 'block', 'fail', 'overwrite', 'grow'"),
    (lambda: leat.Topic.create("o", partitions="2"), TypeError, "partitions must be an int, not <class 'str'>"),
    (lambda: leat.Topic.create("o", evict_after=-1), ValueError, "evict_after must be seconds from 0 on, not -1"),
]
OF_A_TOPIC = [
    (lambda topic: topic.subscriber(partition=7), leat.InvalidArgument, "cannot make a subscriber: the topic has no partition 7"),
    (lambda topic: topic.subscriber(in_place=True), leat.InvalidArgument, "in_place needs gating to be false"),
    (lambda topic: topic.subscriber(from_=leat.From.offset(1)), leat.InvalidArgument, "name a partition"),
    (lambda topic: topic.publisher(partition=7), leat.InvalidArgument, "cannot make a publisher: the topic has no partition 7"),
    (lambda topic: topic.publisher().publish(b"x", partition=7), leat.InvalidArgument,
     "cannot publish: the topic has no partition 7"),
    (lambda topic: topic.publisher().publish_batch([b"x"], partition=7), leat.InvalidArgument, "no partition 7"),
    (lambda topic: topic.publisher().publish_batch([]), leat.InvalidArgument, "a batch has at least one value"),
    (lambda topic: topic.group("my group"), leat.InvalidArgument, "cannot open group 'my group': " + NAME),
    (lambda topic: topic.group("g", members=0), leat.InvalidArgument, "members must be 1 to 255, not 0"),
    (lambda topic: topic.find_group("never"), leat.NotFound, "cannot open group 'never': the topic has no group of this name"),
    (lambda topic: topic.delete_group("never"), leat.NotFound, "cannot delete group 'never'"),
    (lambda topic: topic.subscriber().receive(-1), ValueError, "timeout must be seconds from 0 on, not -1"),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_without_a_topic(directory, number):
    call, kind, wanted = CASES[number]
    with pytest.raises(kind) as raised:
        call()
    assert wanted.format(directory) in str(raised.value)


def test_of_a_topic(directory):
    with leat.Topic.create("topic", partitions=2) as topic:
        for call, kind, wanted in OF_A_TOPIC:
            with pytest.raises(kind) as raised:
                call(topic)
            assert wanted in str(raised.value)


def test_a_directory_that_cannot_be_made(monkeypatch):
    monkeypatch.setenv("LEAT_DIR", "/dev/null/topics")
    with pytest.raises(leat.Error) as raised:
        leat.Topic.create("orders")
    assert str(raised.value) == "cannot create topic 'orders': cannot make the directory /dev/null/topics (LEAT_DIR)"
    assert raised.value.detail != 0 and os.strerror(raised.value.detail)
