#!/usr/bin/env python3
"""The driver of the Python client for tests/conformance, whose README.md says what it reads and prints."""
import io
import os
import string
import sys
import threading
import urllib.parse

import leat

SAFE = set((string.ascii_letters + string.digits + "-_.,/+").encode())
NEW_TOPIC = {"policy": str, "capacity": int, "segment": int, "partitions": int, "timestamps": int, "retain_all": int,
             "durable": str, "sync_interval": lambda text: int(text) / 1000}
NEW_GROUP = {"mode": str, "by_key": int, "max_deliveries": int, "in_flight": int,
             "lease": lambda text: int(text) / 1000}
LONGER_NAMES = {"capacity": "capacity_bytes", "segment": "segment_bytes"}


def encode(data):
    if len(data) <= 64:
        return "".join(chr(byte) if byte in SAFE else f"%{byte:02X}" for byte in data)
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{len(data)}*{value:016x}"


def decode(text):
    return urllib.parse.unquote_to_bytes(text)


def timeout_of(text):
    return None if text == "never" else int(text) / 1000


def from_of(text):
    kind, _, number = text.partition(":")
    if not number:
        return kind
    make = {"offset": leat.From.offset, "last": leat.From.last, "time": leat.From.time_ms}
    return make[kind](int(number))


class Command:
    """The words of a line."""

    def __init__(self, line, out):
        self.name, *words = line.split(" ")
        self.out = out
        self.handles = [word for word in words if "=" not in word]
        self.options = [tuple(word.split("=", 1)) for word in words if "=" in word]

    def option(self, name, otherwise=None):
        return dict(self.options).get(name, otherwise)

    def all(self, name):
        return [value for key, value in self.options if key == name]

    def number(self, name, otherwise=None):
        value = self.option(name)
        return otherwise if value is None else int(value)

    def is_bad(self):
        return bool(self.all("value")) and bool(self.all("count") or self.all("prefix"))

    def timeout(self, otherwise="0"):
        return timeout_of(self.option("timeout", otherwise))

    def value(self):
        fill = self.option("fill")
        if fill is None:
            return decode(self.option("value", ""))
        size, _, byte = fill.partition(":")
        return bytes([int(byte, 16)]) * int(size)

    def some(self, kinds):
        return {LONGER_NAMES.get(key, key): kinds[key](value) for key, value in self.options if key in kinds}

    def entry(self, one, behind=""):
        if isinstance(one, leat.Gap):
            text = f"gap partition={one.partition} offset={one.offset} count={one.count} reason={one.reason}"
        else:
            text = f"record partition={one.partition} offset={one.offset} value={encode(one.value)}"
            if one.key is not None:
                text += f" key={encode(one.key)}"
            for name, value in one.headers:
                text += f" header={encode(name)}:{encode(value)}"
            if one.timestamp_ms is not None:
                text += f" timestamp={one.timestamp_ms}"
        print(text + behind, file=self.out)


class Driver:
    """Runs commands: each is a method, which returns what comes behind `ok`."""

    def __init__(self):
        self.handles = {}
        self.claims = {}
        self.deliveries = {}  # By the member's name, in the order of their numbers.
        self.started = None

    def answer(self, line, out):
        command = Command(line, out)
        run = getattr(self, "do_" + command.name, None)
        if run is None:
            print("error unknown_command", file=out)
            return
        if command.is_bad():
            print("error bad_command", file=out)
            return
        try:
            result = run(command, *[self.handles.get(name, name) for name in command.handles])
            print("ok" if result is None else f"ok {result}", file=out)
        except leat.Error as error:
            print(f"error {error.name}", file=out)

    def keep(self, command, handle):
        self.handles[command.handles[0]] = handle

    # --- Topics ------------------------------------------------------------------------------

    def do_create(self, command, _handle, name):
        self.keep(command, leat.Topic.create(name, **command.some(NEW_TOPIC)))

    def do_open(self, command, _handle, name):
        self.keep(command, leat.Topic.open(name, timeout=command.timeout()))

    def do_delete(self, command, name):
        leat.Topic.delete(name, force=command.option("force") == "1")

    def do_info(self, _command, topic):
        partitions = topic.info()["partitions"]
        return f"partitions={len(partitions)} end={sum(one['end'] for one in partitions)}"

    # --- Publishers --------------------------------------------------------------------------

    def do_publisher(self, command, _handle, topic):
        self.keep(command, topic.publisher(exclusive=command.option("exclusive") == "1",
                                           partition=command.number("partition"),
                                           acknowledge=command.option("acknowledge")))

    def do_publish(self, command, publisher):
        key = command.option("key")
        headers = [tuple(decode(part) for part in pair.split(":")) for pair in command.all("header")]
        offset = publisher.publish(command.value(), None if key is None else decode(key), headers,
                                   command.number("partition"), command.timeout())
        return f"offset={offset}"

    def do_batch(self, command, publisher):
        values = [decode(value) for value in command.all("value")]
        if command.option("count"):
            prefix = decode(command.option("prefix", ""))
            values = [b"%s%d" % (prefix, i) for i in range(command.number("count"))]
        return f"offset={publisher.publish_batch(values, timeout=command.timeout())}"

    def do_claim(self, command, publisher):
        claim = publisher.claim(command.number("size"), command.timeout())
        self.claims[publisher] = claim
        return f"offset={claim.offset}"

    def do_commit(self, command, publisher):
        claim, value = self.claims[publisher], command.value()
        if len(value) <= len(claim):
            try:
                claim.data[:len(value)] = value
            except ValueError:
                pass  # It is over, which commit() says by name.
        claim.commit(len(value))

    def do_abort(self, _command, publisher):
        self.claims[publisher].abort()

    def do_abandon(self, _command, publisher):
        try:
            with publisher.claim(10) as claim:
                claim.data[:] = b"unfinished"
                raise KeyError("left by an exception")
        except KeyError:
            pass

    def do_flush(self, command, publisher):
        publisher.flush(command.timeout("10000"))

    def do_durable_offset(self, _command, publisher):
        return f"offset={publisher.durable_offset()}"

    # --- Subscribers -------------------------------------------------------------------------

    def do_subscriber(self, command, _handle, topic):
        in_place = command.option("in_place") == "1"
        self.keep(command, topic.subscriber(from_=from_of(command.option("from", "end")), in_place=in_place,
                                            gating=command.option("lossy") != "1" and not in_place,
                                            partition=command.number("partition")))

    def do_poll(self, command, subscriber):
        for one in subscriber.poll(command.number("limit", 64)):
            command.entry(one)

    def do_take(self, command, subscriber):
        left = command.number("count", 1)
        while left > 0:
            for one in subscriber.receive_batch(min(left, 64), command.timeout("10000")):
                command.entry(one)
                left -= not isinstance(one, leat.Gap)

    def do_view(self, command, subscriber):
        left = command.number("count", 1)
        while left > 0:
            with subscriber.view(min(left, 64), command.timeout("10000")) as batch:
                for one in batch:
                    command.entry(one)
                    left -= not isinstance(one, leat.Gap)

    def do_wait(self, command, handle):
        handle.wait(command.timeout())

    def do_wait_any(self, command, *subscribers):
        return f"index={leat.wait_any(subscribers, command.timeout())}"

    def do_offset(self, command, subscriber):
        return f"offset={subscriber.offset(command.number('partition', 0))}"

    # --- Groups ------------------------------------------------------------------------------

    def do_group(self, command, _handle, topic, name):
        group = topic.group(name, from_=from_of(command.option("from", "end")), **command.some(NEW_GROUP))
        self.keep(command, group)
        return f"created={int(group.was_created)}"

    def do_find_group(self, command, _handle, topic, name):
        self.keep(command, topic.find_group(name))

    def do_delete_group(self, command, topic, name):
        topic.delete_group(name, force=command.option("force") == "1")

    def do_group_info(self, _command, group):
        info = group.info()
        return f"returned={info['returned']} taking={info['taking']}"

    def do_seek(self, command, group):
        group.seek(from_of(command.option("to")), command.number("partition"))

    def do_position(self, command, group):
        return f"offset={group.position(command.number('partition', 0))}"

    def do_join(self, command, handle, group):
        self.deliveries[command.handles[0]] = []
        self.keep(command, group.join(name=command.option("name")))

    def do_receive(self, command, member):
        received = self.deliveries[command.handles[0]]
        for one in member.receive_batch(command.number("limit", 1), command.timeout()):
            if isinstance(one, leat.Gap):
                command.entry(one)
            else:
                command.entry(one, f" delivery={len(received)} deliveries={one.deliveries}")
                received.append(one)

    def named(self, command, numbers):
        return [self.deliveries[command.handles[0]][int(number)] for number in numbers]

    def do_acknowledge(self, command, member, *numbers):
        named = self.named(command, numbers)
        return f"count={member.acknowledge(named[0] if len(named) == 1 else named)}"

    def do_acknowledge_up_to(self, command, member, number):
        return f"count={member.acknowledge_up_to(*self.named(command, [number]))}"

    def do_acknowledge_all(self, _command, member):
        return f"count={member.acknowledge_all()}"

    def do_requeue(self, command, member, number):
        member.requeue(*self.named(command, [number]), delay=command.number("delay", 0) / 1000)

    def do_in_flight(self, _command, member):
        return f"count={member.in_flight()}"

    # --- Any handle --------------------------------------------------------------------------

    def do_stop(self, _command, handle):
        handle.stop()

    def do_resume(self, _command, handle):
        handle.resume()

    def do_close(self, _command, handle):
        handle.close()

    def do_error_names(self, command):
        print("0 ok", file=command.out)
        kinds = [kind for kind in vars(leat).values() if isinstance(kind, type) and issubclass(kind, leat.Error)]
        for kind in sorted(kinds, key=lambda kind: kind.code):
            if kind is not leat.Error:
                print(kind.code, kind.name, file=command.out)

    # --- Threads and processes ---------------------------------------------------------------

    def start(self, line):
        out = io.StringIO()
        thread = threading.Thread(target=self.answer, args=(line, out), daemon=True)
        thread.start()
        self.started = thread, out
        print("ok")

    def finish(self):
        thread, out = self.started
        thread.join()
        print(out.getvalue(), end="")

    def fork(self, line):
        child = os.fork()
        if child == 0:
            self.answer(line, sys.stdout)
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)

    def run(self):
        for line in sys.stdin:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "quit":
                break
            if word == "start":
                self.start(rest)
            elif word == "finish":
                self.finish()
            elif word == "fork":
                self.fork(rest)
            else:
                self.answer(line.rstrip("\n"), sys.stdout)
            sys.stdout.flush()


if __name__ == "__main__":
    Driver().run()
    sys.stdout.flush()
    os._exit(0)  # Closes nothing.
