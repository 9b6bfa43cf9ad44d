#!/usr/bin/env python3
"""What a record costs in Python, for `leat bench clients`: python TOPIC SIZE RECORDS. Prints nanoseconds as a line of JSON.

The topic holds all records. Each part runs twice, and the second time counts.
"""
import json
import platform
import sys
from itertools import repeat
from time import perf_counter_ns

import leat

BATCH = 64


def publish(publisher, value, records):
    for _ in repeat(None, records):
        publisher.publish(value)


def publish_batches(publisher, values, records):
    for _ in repeat(None, records // BATCH):
        publisher.publish_batch(values)


def read(subscriber, records):
    last = 0
    while records > 0:
        values = subscriber.read_values(BATCH)
        for value in values:
            last |= value[-1]
        records -= len(values)
    return last


def view(subscriber, records):
    last = 0
    while records > 0:
        with subscriber.view(BATCH) as batch:
            for record in batch:
                last |= record.value[-1]
            records -= len(batch)
    return last


def time_publishing(topic, work, what, records):
    with topic.publisher() as publisher:
        work(publisher, what, records)
        begin = perf_counter_ns()
        work(publisher, what, records)
        return (perf_counter_ns() - begin) / records


def time_reading(topic, work, records):
    for _ in range(2):
        with topic.subscriber(from_=leat.From.last(records)) as subscriber:
            begin = perf_counter_ns()
            last = work(subscriber, records)
            ns = (perf_counter_ns() - begin) / records
            assert last == 0
    return ns


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: python TOPIC SIZE RECORDS")
    value, records = bytes(int(sys.argv[2])), int(sys.argv[3])
    with leat.Topic.open(sys.argv[1]) as topic:
        print(json.dumps({
            "runtime": f"{platform.python_implementation()} {platform.python_version()}",
            "publish_ns": time_publishing(topic, publish, value, records),
            "batch_ns": time_publishing(topic, publish_batches, [value] * BATCH, records),
            "read_ns": time_reading(topic, read, records),
            "view_ns": time_reading(topic, view, records),
        }))


if __name__ == "__main__":
    try:
        main()
    except leat.Error as error:
        sys.exit(str(error))
