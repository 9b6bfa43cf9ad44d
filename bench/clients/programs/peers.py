#!/usr/bin/python3
"""Python between two processes, by Leat or by pyzmq, for `leat bench clients --peers`.

    peers pyzmq|single|batch TOPIC SIZE RECORDS CPU CPU

Sends RECORDS values of SIZE bytes from a process on the first CPU to one on the second, which counts them. Prints records
per second, from the first send until the last was received, as a line of JSON. A tenth as many are sent before, to warm up.
"""
import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

BATCH = 64


def import_or_exit(name, built_by):
    try:
        return __import__(name)
    except ImportError as error:
        sys.exit(f"{error}: {built_by}")


class Leat:
    def __init__(self, topic, in_batches):
        self.leat = import_or_exit("leat", "`make clients` in Leat's sources builds it")
        self.topic_name = topic
        self.in_batches = in_batches
        self.runtime = f"leat {self.leat.__version__}"

    def open_receiver(self):
        self.subscriber = self.leat.Topic.open(self.topic_name).subscriber()

    def receive(self, count, size):
        while count > 0:
            values = self.subscriber.read_values(BATCH)
            if not values:
                self.subscriber.wait()
            count -= len(values)
        assert count == 0 and len(values[-1]) == size

    def open_sender(self):
        self.publisher = self.leat.Topic.open(self.topic_name).publisher()

    def send(self, count, value):
        if self.in_batches:
            values = [value] * BATCH
            for _ in range(count // BATCH):
                self.publisher.publish_batch(values)
        else:
            for _ in range(count):
                self.publisher.publish(value)


class Pyzmq:
    def __init__(self):
        self.zmq = import_or_exit("zmq", "install python3-zmq")
        self.runtime = f"pyzmq {self.zmq.__version__}, libzmq {self.zmq.zmq_version()}"
        self.address = f"ipc://@leat-bench-{os.getpid()}"  # In no directory: nothing is left behind.

    def socket(self, kind):
        socket = self.zmq.Context().socket(kind)
        socket.set_hwm(0)  # Without a limit: nobody waits, nothing is lost.
        return socket

    def open_receiver(self):
        self.pull = self.socket(self.zmq.PULL)
        self.pull.bind(self.address)

    def receive(self, count, size):
        for _ in range(count):
            value = self.pull.recv()
        assert len(value) == size

    def open_sender(self):
        self.push = self.socket(self.zmq.PUSH)
        self.push.connect(self.address)

    def send(self, count, value):
        for _ in range(count):
            self.push.send(value)


def receive_all(system, size, counts, pipe):
    """Tells the sender when it is ready, and what time it is after each of the counts."""
    system.open_receiver()
    os.write(pipe, b"ready\n")
    for count in counts:
        system.receive(count, size)
        os.write(pipe, b"%d\n" % time.monotonic_ns())


def send_all(system, size, counts, receiver):
    """Returns how long the last of the counts took, in nanoseconds."""
    def said():
        return receiver.readline() or sys.exit(1)  # The receiver has said why it failed.

    said()
    system.open_sender()
    value = bytes(size)
    for count in counts:
        begin = time.monotonic_ns()
        system.send(count, value)
        end = int(said())
    return end - begin


def main():
    if len(sys.argv) != 7:
        sys.exit("usage: peers pyzmq|single|batch TOPIC SIZE RECORDS CPU CPU")
    how, topic = sys.argv[1:3]
    size, records, *cpus = map(int, sys.argv[3:])
    counts = [records // 10 // BATCH * BATCH + BATCH, records]
    system = Pyzmq() if how == "pyzmq" else Leat(topic, how == "batch")
    end, other_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        os.sched_setaffinity(0, {cpus[1]})
        receive_all(system, size, counts, other_end)
        return
    try:
        os.close(other_end)
        os.sched_setaffinity(0, {cpus[0]})
        with open(end, encoding="ascii") as receiver:
            took_ns = send_all(system, size, counts, receiver)
    finally:
        os.kill(child, signal.SIGKILL)  # It has nothing more to do.
        os.waitpid(child, 0)
    print(json.dumps({"runtime": system.runtime, "records_per_second": records * 1e9 / took_ns}))


if __name__ == "__main__":
    main()
