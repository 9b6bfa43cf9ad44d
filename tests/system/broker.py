"""`leat-serve` for a test, and clients that a stranger would write: pyzmq, or bytes on a socket.

    broker = serve("--data-auth", "joined")      # the fixture; ready when it returns
    broker.create("news")
    push, pull = broker.producer("news"), broker.puller("news")
    push.send(b"hello")
    assert pull.recv() == b"hello"

The executable is `leat-serve` beside `leat`, or the one that LEAT_SERVE_BIN names. Every wait has the same
generous limit; a socket that gets nothing in this time raises zmq.Again.
"""
import json
import os
import random
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import zmq
from zmq.utils.monitor import recv_monitor_message

WAIT_SECONDS = 10
ADMIN = "lightq_admin"
USER = "test_admin"
PASSWORD = "T0p$3cr31"
REFUSED = {zmq.EVENT_HANDSHAKE_FAILED_AUTH, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
           zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq.EVENT_DISCONNECTED}


def free_ports(count):
    """The first of `count` consecutive ports on which nobody listens now.

    All are below those that the kernel gives out. Each of the processes that run tests has a part of its own, as far as
    there are enough for the largest test: others would take the ports of a broker that a test starts again.
    """
    parts = min(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), 8)
    size = (32_000 - 10_000) // parts
    begin = 10_000 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % parts * size
    for _ in range(200):
        first = random.randrange(begin, begin + size - count)
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise AssertionError(f"no {count} free ports in a row")


def wait_for(condition, what="it", seconds=WAIT_SECONDS):
    """Waits for a condition; returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} did not happen in {seconds} s"
        time.sleep(0.01)
    return value


class Watch:
    """What happens to the connections of a pyzmq socket. Made before it connects."""

    def __init__(self, watched):
        self.events = []
        self.monitor = watched.get_monitor_socket(zmq.EVENT_ALL)

    def poll(self, milliseconds=0):
        """Takes what has happened, and waits so long for the first of it; returns all so far."""
        while self.monitor.poll(milliseconds):
            self.events.append(int(recv_monitor_message(self.monitor)["event"]))
            milliseconds = 0
        return self.events

    def until(self, wanted):
        """Waits for one of some events; returns it."""
        wanted = {wanted} if isinstance(wanted, int) else wanted
        end = time.monotonic() + WAIT_SECONDS
        while not (found := wanted & set(self.poll(10))):
            assert time.monotonic() < end, f"none of {wanted} came, but {self.events}"
        return found.pop()


class Broker:
    """One broker on directories of its own. Stopped and started again, it is on the same ones."""

    def __init__(self, leat, path, *options, port=None, ports=40):
        self.dir = leat.directory
        self.data, self.state, self.log_file = path / "data", path / "state", path / "log"
        self.executable = Path(os.environ.get("LEAT_SERVE_BIN",
                                              leat.executable.parent / "leat-serve")).resolve()
        assert self.executable.exists(), f"{self.executable} is missing: build leat-serve first"
        self.port = port or free_ports(ports)
        self.options = {"--dir": self.dir, "--data-dir": self.data, "--state-dir": self.state,
                        "--lightq-port": str(self.port)}
        self.more = options
        self.context = self.new_context()
        self.sockets = []  # All of them: one that is forgotten would close, and wait to send the rest.
        self.process = None
        self.request = None
        self.plain = True  # Whether data connections bring user and password.

    @staticmethod
    def new_context():
        context = zmq.Context()
        context.set(zmq.MAX_SOCKETS, 4096)
        return context

    # --- The process ------------------------------------------------------------------------------

    def environment(self):
        return {name: value for name, value in os.environ.items() if not name.startswith("LEAT_")}

    def command_with(self, *options):
        """The command line; those of its own options that are given again are left out."""
        own = [word for name, value in self.options.items() if name not in options
               for word in (name, value)]
        return [self.executable, *own, *self.more, *options]

    def start(self):
        already = self.log().count("listening on")
        with open(self.log_file, "ab") as log, open(f"{self.log_file}.stdout", "ab") as output:
            self.process = subprocess.Popen(
                self.command_with(), stdin=subprocess.DEVNULL, stdout=output, stderr=log,
                env=self.environment(), start_new_session=True)
        wait_for(lambda: self.log().count("listening on") > already or self.process.poll() is not None,
                 "listening")
        assert self.process.poll() is None, f"exit {self.process.poll()}: {self.log()}"
        return self

    def run(self, *options):
        """Runs with other options to the end."""
        return subprocess.run(self.command_with(*options), env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_SECONDS)

    def stop(self, number=signal.SIGTERM):
        """Sends a signal; returns the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(WAIT_SECONDS)
        if self.request is not None:
            self.request.close(linger=0)
            self.request = None
        return code

    def hang_up(self):
        """Ends all connections of ZeroMQ that were made here."""
        self.context.destroy(linger=0)  # With those that watch them: else libzmq may wait for these.
        self.context = self.new_context()
        self.sockets.clear()
        self.request = None

    def close(self):
        self.context.destroy(linger=0)
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        """Its own memory, and what it has mapped of files: programs, and segments of durable topics."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return sum(int(status.partition(f"{name}:")[2].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))

    def has_open_topics(self):
        maps = Path(f"/proc/{self.process.pid}/maps").read_text()
        return any(f"{directory}/" in maps for directory in (self.dir, self.data))

    def is_sanitized(self):
        """Whether it is built with a sanitizer, which takes memory of its own."""
        program = self.executable.read_bytes()
        return b"__asan_init" in program or b"__tsan_init" in program

    # --- Administration ---------------------------------------------------------------------------

    @property
    def admin_password(self):
        return (self.state / "admin-password").read_text().strip()

    def socket(self, kind, **options):
        """A pyzmq socket; options by their names in lower case: rcvhwm=1."""
        made = self.context.socket(kind)
        self.sockets.append(made)
        for name, value in {"rcvtimeo": WAIT_SECONDS * 1000, "sndtimeo": WAIT_SECONDS * 1000,
                            **options}.items():
            setattr(made, name, value)
        return made

    def admin(self, **options):
        """A new connection to the administration."""
        request = self.socket(zmq.REQ, **options)
        request.connect(f"tcp://127.0.0.1:{self.port}")
        return request

    def ask(self, command, request=None):
        """The answer to a command: a dictionary, or the bytes if it is no JSON."""
        if request is None:
            request = self.request = self.request or self.admin()
        request.send(command if isinstance(command, bytes) else json.dumps(command).encode())
        answer = request.recv()
        assert not request.getsockopt(zmq.RCVMORE), f"{answer} has a second part"
        return json.loads(answer) if answer.startswith(b"{") else answer

    def create(self, topic, password=PASSWORD, **fields):
        answer = self.ask({"cmd": "create_topic", "admin_user_id": ADMIN, "topic": topic,
                           "admin_password": self.admin_password, "user_id": USER,
                           "password": password, "broker_type": "queue", **fields})
        assert answer == {"cmd": "create_topic", "status": "ok",
                          "description": "topic created successfully"}

    def join(self, topic, role, password=PASSWORD, **fields):
        """Where to connect: tcp://127.0.0.1:PORT."""
        answer = self.ask(self.join_command(topic, role, password, **fields))
        assert answer["status"] == "ok", answer
        return answer["bind_uri"]

    @staticmethod
    def join_command(topic, role, password=PASSWORD, **fields):
        return {"cmd": "join", "topic": topic, "user_id": USER, "password": password,
                "connection_type": "zmq", "type": role, **fields}

    def stats(self, topic, password=PASSWORD):
        answer = self.ask({"cmd": "stats", "topic": topic, "user_id": USER, "password": password})
        assert answer["status"] == "ok", answer
        return answer

    def stats_become(self, topic, /, with_password=PASSWORD, **wanted):
        """Waits until the statistics of a topic have these values."""
        wait_for(lambda: wanted.items() <= self.stats(topic, with_password).items(),
                 f"{wanted} instead of {self.stats(topic, with_password)}")

    # --- Data -------------------------------------------------------------------------------------

    def connect(self, kind, uri, password=PASSWORD, user=USER, subscribe=None, **options):
        """A data connection, and what watches it. A password of None: brings no credentials."""
        made = self.socket(kind, **options)
        if password is not None:
            made.plain_username, made.plain_password = user.encode(), password.encode()
        if subscribe is not None:
            made.setsockopt(zmq.SUBSCRIBE, subscribe)
        watch = Watch(made)
        made.connect(uri)
        return made, watch

    def connected(self, kind, topic, role, **options):
        options = {"password": PASSWORD if self.plain else None, **options}
        made, watch = self.connect(kind, self.join(topic, role), **options)
        watch.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        return made

    def producer(self, topic, **options):
        return self.connected(zmq.PUSH, topic, "pub", **options)

    def puller(self, topic, **options):
        return self.connected(zmq.PULL, topic, "pull", **options)

    def subscriber(self, topic, subscribe=None, **options):
        """A subscriber; `subscribed()` says when it gets messages."""
        subscribe = topic.encode() if subscribe is None else subscribe
        return self.connected(zmq.SUB, topic, "sub", subscribe=subscribe, **options)


# --- Messages -------------------------------------------------------------------------------------

PROBE = b"probe"


def subscribed(push, *subscribers):
    """Sends probes until each subscriber has got one: nothing answers a subscription."""
    waiting = set(subscribers)

    def all_got_one():
        push.send(PROBE)
        waiting.difference_update([each for each in waiting if each.poll(20)])
        return not waiting
    wait_for(all_got_one, "a subscription")


def take(received, count):
    """The next messages of a puller that are no probes."""
    messages = []
    while len(messages) < count:
        try:
            message = received.recv()
        except zmq.Again:
            raise AssertionError(f"only {len(messages)} of {count} came") from None
        if message != PROBE:
            messages.append(message)
    return messages


def take_pairs(subscriber, count):
    """The same for a subscriber: pairs of topic and message."""
    pairs = []
    while len(pairs) < count:
        try:
            topic, message = subscriber.recv_multipart()
        except zmq.Again:
            raise AssertionError(f"only {len(pairs)} of {count} came") from None
        if message != PROBE:
            pairs.append((topic, message))
    return pairs


# --- Bytes ----------------------------------------------------------------------------------------

class Bytes:
    """A connection for clients that are not pyzmq, or that misbehave."""

    def __init__(self, port, data=b"", source=None):
        """At a port, from an address of this machine; or at the path of a Unix socket."""
        if isinstance(port, Path):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(WAIT_SECONDS)
            self.socket.connect(str(port))
        else:
            self.socket = socket.create_connection(("127.0.0.1", port), WAIT_SECONDS,
                                                   source and (source, 0))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if data:
            self.send(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """Sends what the broker takes: it may close meanwhile."""
        try:
            self.socket.sendall(data)
        except ConnectionError:
            pass

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            assert more, f"it closed after {data!r}"
            data += more
        return data

    def is_closed(self):
        """Waits until the broker closes, and throws away what comes before."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionError:
            pass
        except socket.timeout:
            return False
        return True

    # JSON behind its length, the other form of the administration.
    def ask(self, command):
        self.send_framed(command)
        return self.read_framed()

    def send_framed(self, command):
        text = command if isinstance(command, bytes) else json.dumps(command).encode()
        self.send(struct.pack(">I", len(text)) + text)

    def read_framed(self):
        answer = self.read(struct.unpack(">I", self.read(4))[0])
        return json.loads(answer) if answer.startswith(b"{") else answer


def zmtp_hello(kind, mechanism=b"NULL"):
    """What a ZMTP 3.0 client with these bytes as its type ("REQ") sends first."""
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    return (b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32) +
            b"\x04" + bytes([len(ready)]) + ready)
