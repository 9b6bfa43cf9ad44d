"""Leat: topics in shared memory, which processes publish to and read from directly.

    import leat

    topic = leat.Topic.open_or_create("orders")
    with topic.publisher() as publisher:
        publisher.publish(b"hello", key=b"customer-7")
    with topic.subscriber(from_="beginning") as subscriber:
        for record in subscriber.receive_batch():
            print(record)

Times are seconds. A timeout of None waits for ever, and of 0 not at all.
A publisher, subscriber or member is used by one thread at a time; topics and groups by several.
README.md beside this package has threads, fork, signals and views.
"""
from typing import NamedTuple as _NamedTuple

from . import _async, _leat
from ._leat import *  # noqa: F403  One class for each error, among others.
from ._leat import __version__  # noqa: F401

_leat._set_async(
    _async.receive, _async.receive_batch, _async.next_entry, _async.publish, _async.publish_batch, _async.flush
)


class From(_NamedTuple):
    """Where a subscriber or a group begins, if neither at the "end" nor at the "beginning"."""

    kind: int
    number: int

    @classmethod
    def offset(cls, offset):
        """The record with this offset."""
        return cls(2, offset)

    @classmethod
    def last(cls, count):
        """The last `count` records of each partition."""
        return cls(3, count)

    @classmethod
    def time_ms(cls, milliseconds):
        """The first record that is not older; in milliseconds since 1970."""
        return cls(4, milliseconds)


class NewRecord(_NamedTuple):
    """A record of a batch to publish. Records that were received do as well."""

    value: bytes
    key: "bytes | None" = None
    headers: object = ()
