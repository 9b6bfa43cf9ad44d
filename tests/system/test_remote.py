"""If these tests failed, `leat topic|pub|sub --broker` would lose messages, do something else than it says, show a password,
or believe what a stranger at the broker's port says."""
import json
import re
import signal
import socket
import struct
import subprocess
import threading

import pytest

from broker import ADMIN, PASSWORD, USER, WAIT_SECONDS, take
from test_cli import one_line
from test_pub_sub import Reader

SECRET = "Opal-Kolibri-3"


class At:
    """`leat … --broker` with a broker's users."""

    def __init__(self, leat, port):
        self.leat = leat
        self.port = port

    def words(self, arguments, user):
        return [*arguments, "--broker", f"lightq://{user}@127.0.0.1:{self.port}"]

    def variables(self, password, more):
        return {**self.leat.environment, "LEAT_PASSWORD": password, **more}

    def __call__(self, *arguments, user=USER, password=PASSWORD, input=None, **variables):
        return subprocess.run([self.leat.executable, *map(str, self.words(arguments, user))],
                              env=self.variables(password, variables), input=input, text=True,
                              capture_output=True, timeout=60,
                              stdin=subprocess.DEVNULL if input is None else None)

    def start(self, *arguments, user=USER, password=PASSWORD):
        return self.leat.start(*self.words(arguments, user), env=self.variables(password, {}))


@pytest.fixture
def broker(serve):
    made = serve()
    made.create("test")
    return made


@pytest.fixture
def at(leat, broker):
    return At(leat, broker.port)


def ok(done):
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def as_admin(broker):
    return {"user": ADMIN, "password": broker.admin_password}


# --- Topics ---------------------------------------------------------------------------------------

def test_topics_are_made_and_listed(broker, at):
    # Breaks: an administrator on another machine cannot make topics.
    made = ok(at("topic", "create", "news", "--user", "ann", LEAT_TOPIC_PASSWORD=SECRET,
                 **as_admin(broker)))
    assert made == f"created topic 'news' of type queue at 127.0.0.1:{broker.port}, for ann\n"
    ok(at("topic", "create", "kept", "--durable", "os", "--user", "ann", LEAT_TOPIC_PASSWORD=SECRET,
          **as_admin(broker)))
    table = ok(at("topic", "list", **as_admin(broker))).splitlines()
    assert table[0].split() == ["NAME", "TYPE", "USER"]
    assert sorted(line.split() for line in table[1:]) == [
        ["kept", "file", "ann"], ["news", "queue", "ann"], ["test", "queue", USER]]
    assert table[1:] == ok(at("ls", **as_admin(broker))).splitlines()[1:]
    topics = json.loads(ok(at("topic", "list", "--json", **as_admin(broker))))
    assert {one["topic"] for one in topics} == {"test", "news", "kept"}
    one_line(at("topic", "create", "news", "--user", "ann", LEAT_TOPIC_PASSWORD=SECRET,
                **as_admin(broker)), 3, "topic already exists")
    one_line(at("topic", "list", user=ADMIN, password="wrong"), 4, "password is wrong")
    assert broker.join("news", "pull", SECRET, user_id="ann")


def test_topic_that_is_there_is_opened_and_not_created(leat, broker, at):
    # Breaks: "created" of a topic that has records and options of its own.
    leat("topic", "create", "local", "--capacity", "1MiB", check=True)
    made = ok(at("topic", "create", "local", "--user", "ann", LEAT_TOPIC_PASSWORD=SECRET, **as_admin(broker)))
    assert made == (f"opened topic 'local', which programs on the machine of 127.0.0.1:{broker.port} have made, "
                    "for ann\n")
    ok(at("pub", "local", "hello", user="ann", password=SECRET))
    assert leat("sub", "local", "--from", "beginning", "--exit", check=True).stdout == "hello\n"


def test_missing_right_is_named(broker, at):
    # Breaks: who is let in, and may not do this, looks for a wrong password.
    for right, missing, words in (("read", "write", ["pub", "test", "x"]), ("write", "read", ["sub", "test"]),
                                  ("write", "read", ["group", "seek", "test", "lightq", "end"])):
        broker.ask({"cmd": "grant", "topic": "test", "user_id": "bob", "right": right, "password": SECRET,
                    "admin_user_id": ADMIN, "admin_password": broker.admin_password})
        done = at(*words, user="bob", password=SECRET)
        one_line(done, 4, f"user 'bob' has no right to {missing} topic 'test'; the administrator can grant it")
        assert "wrong" not in done.stderr
    for words in (["ls"], ["topic", "create", "x", "--user", "ann"], ["rm", "test"]):
        one_line(at(*words, LEAT_TOPIC_PASSWORD=SECRET), 4, "only the administrator may do this")


def test_info_tells_what_waits(broker, at):
    # Breaks: nobody sees that consumers are behind.
    ok(at("pub", "test", "one", "two"))
    text = ok(at("topic", "info", "test"))
    assert re.search(r"^waiting +2, for pullers$", text, re.M) and re.search("^type +queue$", text, re.M)
    facts = json.loads(ok(at("topic", "info", "test", "--json")))
    assert facts == {"name": "test", "type": "queue", "waiting": 2, "received": 2, "sent": 0,
                     "publishers": 0, "subscribers": 0}
    one_line(at("topic", "info", "missing"), 3, "topic not found")


class Stranger:
    """Answers one admin connection with what it is given, and remembers the commands."""

    def __init__(self, *answers):
        self.commands = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, args=(answers,), daemon=True)
        self.thread.start()

    def serve(self, answers):
        client, _ = self.listener.accept()
        with client, client.makefile("rb") as stream:
            for answer in answers:
                self.commands.append(json.loads(stream.read(struct.unpack(">I", stream.read(4))[0])))
                body = json.dumps(answer).encode() if isinstance(answer, dict) else answer
                client.sendall(body if isinstance(answer, bytes) else
                               struct.pack(">I", len(body)) + body)


def test_delete_asks_for_each_topic(leat):
    # Breaks: topics of a broker cannot be deleted, or one that cannot be hides the others.
    stranger = Stranger({"cmd": "delete_topic", "status": "ok"},
                        {"cmd": "delete_topic", "status": "error", "description": "topic not found"},
                        {"cmd": "delete_topic", "status": "ok"})
    at = At(leat, stranger.port)
    done = at("topic", "delete", "one", "two", "three", user=ADMIN, password=SECRET)
    one_line(done, 3, "'two'", "topic not found")
    assert stranger.commands == [
        {"cmd": "delete_topic", "topic": name, "admin_user_id": ADMIN, "admin_password": SECRET}
        for name in ("one", "two", "three")]


@pytest.mark.parametrize("answer, words", [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", ["no JSON behind its length"]),
    (b"\xff" * 100, ["no JSON behind its length"]), (b"\0\0\0\4nope", ["'nope'"]),
    (b"\0\0\0\2{}", ["'{}'"]), (b"\0\0\0\6{", ["ended the connection"]), (b"", ["ended the connection"]),
    ({"status": "error", "description": "a\nb\x1b[31m" + "x" * 5000}, ["refuses: a b"]),
    ({"status": "error"}, ["refuses"])])
def test_stranger_at_the_port_gets_nowhere(leat, answer, words):
    # Breaks: what is no broker's answer fills a terminal, or counts as success.
    done = At(leat, Stranger(answer).port)("topic", "info", "test")
    one_line(done, done.returncode, *words)
    assert done.returncode != 0 and len(done.stderr) < 400 and "\x1b" not in done.stderr


def test_list_of_a_stranger_is_harmless(leat):
    # Breaks: a broker that lies crashes its clients.
    for topics in (None, 7, "x", [1, None, {"topic": 5}, {"topic": "a\x1b[31m\x9b31m"}], {"topic": {}}):
        for words in ["list"], ["list", "--json"]:
            done = At(leat, Stranger({"status": "ok", "topics": topics}).port)("topic", *words)
            assert done.returncode in (0, 1, 2, 5) and not set("\x1b\x9b") & set(done.stdout + done.stderr)
            assert done.stderr.count("\n") <= 1
    deep = b'{"status": "ok", "topics": ' + b"[" * 2_000_000 + b"]" * 2_000_000 + b"}"
    one_line(At(leat, Stranger(struct.pack(">I", len(deep)) + deep).port)("topic", "list"), 5, "too deep")


# --- pub and sub ----------------------------------------------------------------------------------

def test_lines_go_there_and_come_back(broker, at):
    # Breaks: the simplest use.
    lines = "".join(f"line {i}\n" for i in range(5000))
    ok(at("pub", "test", input=lines))
    got = ok(at("sub", "test", "--group", "lightq", "--count", 5000))
    assert got == lines
    broker.stats_become("test", queue_size=0, messages_sent=5000)


def test_timeout_ends_a_puller_that_has_acknowledged(broker, at):
    # Breaks: a script that waits for an answer hangs, or gets a message once more.
    ok(at("pub", "test", "x"))
    done = at("sub", "test", "--group", "lightq", "--timeout", "1s")
    one_line(done, 1, "no record came within 1s")
    assert done.stdout == "x\n"
    for options in ([], ["--group", "lightq"]):
        done = at("sub", "test", "--timeout", "100ms", *options)
        one_line(done, 1, "no record came within 100ms")
        assert done.stdout == ""


def test_pub_takes_what_it_takes_here(broker, at, tmp_path):
    # Breaks: scripts need other options for another machine.
    file = tmp_path / "file"
    file.write_bytes(b"a;b;c")
    for words, input in ((["--file", file, "--delimiter", ";"], None), (["--null"], "d\0e\0"),
                         (["--count", "1"], "f\ng\n"), (["--generate", "1", "--count", "2"], None),
                         (["x", ""], None), (["--length-prefixed"], "\3\0\0\0y\nz")):
        ok(at("pub", "test", *words, input=input))
    pull = broker.puller("test")
    assert take(pull, 11) == [b"a", b"b", b"c", b"d", b"e", b"f", b"0", b"1", b"x", b"", b"y\nz"]


def test_pub_ends_when_the_topic_has_everything(broker, at):
    # Breaks: `leat pub` succeeds, and a broker that is killed then has not all.
    ok(at("pub", "test", "--generate", "100", "--count", "20000"))
    broker.stop(signal.SIGKILL)
    broker.start()
    broker.stats_become("test", messages_received=20000)


def test_pub_sends_each_line_at_once(broker, at):
    # Breaks: a log that is piped through arrives only when it ends.
    process = at.start("pub", "test")
    pull = broker.puller("test")
    for line in "first", "second":
        process.stdin.write(line + "\n")
        process.stdin.flush()
        assert take(pull, 1) == [line.encode()]
    process.stdin.close()
    assert process.wait(WAIT_SECONDS) == 0


def test_subscriber_gets_everything_as_it_comes(broker, at):
    # Breaks: the simplest use of a subscriber.
    process = at.start("sub", "test", "--count", "3", "--null")
    broker.stats_become("test", subscribers_count=1)
    ok(at("pub", "test", "one", "two", "three", "four"))
    output, errors = process.communicate(timeout=WAIT_SECONDS)
    assert (output, errors, process.returncode) == ("one\0two\0three\0", "", 0)


def test_what_a_puller_did_not_write_goes_to_another(broker, at):
    # Breaks: a consumer that is killed, or whose reader ends, loses messages.
    ok(at("pub", "test", "--generate", "1000", "--count", "2000"))
    process = at.start("sub", "test", "--group", "lightq")
    first = process.stdout.read(1001)
    process.kill()
    process.wait()
    assert first == "0" * 1000 + "\n"
    rest = ok(at("sub", "test", "--group", "lightq", "--count", 1000))
    assert len(rest.splitlines()) == 1000
    broker.stats_become("test", subscribers_count=0)
    assert 0 < broker.stats("test")["queue_size"] <= 1000


def test_puller_whose_reader_ends_settles_only_what_was_written(broker, at):
    # Breaks: `leat sub … | head -1` loses what it did not write.
    ok(at("pub", "test", "--generate", "10000", "--count", "500"))
    process = at.start("sub", "test", "--group", "lightq")
    process.stdout.read(10001)
    process.stdout.close()
    assert process.wait(WAIT_SECONDS) == 0
    broker.stats_become("test", subscribers_count=0)
    assert broker.stats("test")["queue_size"] > 400


@pytest.mark.parametrize("options", [[], ["--group", "lightq"]])
def test_signal_ends_a_reader(broker, at, options):
    # Breaks: it must be killed, and its messages come once more.
    process = at.start("sub", "test", *options)
    broker.stats_become("test", subscribers_count=1)
    push = broker.producer("test")
    push.send(b"hello")
    Reader(process.stdout).until("hello\n")
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_SECONDS) == 0
    broker.stats_become("test", subscribers_count=0, queue_size=0 if options else
                        broker.stats("test")["queue_size"])


def test_broker_that_dies_is_said(broker, at):
    # Breaks: both wait for ever, or end as if all were well.
    reader = at.start("sub", "test")
    writer = at.start("pub", "test")
    writer.stdin.write("one\n")
    writer.stdin.flush()
    broker.stats_become("test", messages_received=1, subscribers_count=1)
    broker.stop(signal.SIGKILL)
    _, errors = reader.communicate(timeout=WAIT_SECONDS)
    assert reader.returncode == 3 and re.fullmatch("leat: the broker .* ended the connection\n", errors)
    _, errors = writer.communicate("two\n", timeout=WAIT_SECONDS)
    assert writer.returncode == 3 and errors.count("\n") == 1
    assert re.search("of [12] messages, 1 are known to be in topic 'test'", errors)


def test_message_over_the_brokers_limit_is_said(broker, at):
    # Breaks: nobody knows why the connection ended.
    done = at("pub", "test", "--generate", 2 << 20, "--count", 1)
    one_line(done, 3, "0 are known to be in topic 'test'", "limits.message_size")


# --- Groups ---------------------------------------------------------------------------------------

def test_pullers_go_on_where_seek_says(broker, at):
    # Breaks: nobody on another machine can have messages once more, or pass over them.
    ok(at("topic", "create", "kept", "--durable", "os", "--user", USER, LEAT_TOPIC_PASSWORD=PASSWORD,
          **as_admin(broker)))
    ok(at("pub", "kept", input="0\n1\n2\n3\n"))
    pull = ["sub", "kept", "--group", "lightq", "--count"]
    assert ok(at(*pull, 4)) == "0\n1\n2\n3\n"
    for place, first in ("beginning", 0), ("2", 2), ("earliest", 0), ("3", 3):
        assert ok(at("group", "seek", "kept", "lightq", place)) == ""
        assert ok(at(*pull, 4 - first)) == "0\n1\n2\n3\n"[2 * first:]
    ok(at("group", "seek", "kept", "lightq", "beginning"))
    ok(at("group", "seek", "kept", "lightq", "latest"))
    ok(at("pub", "kept", "4"))
    assert ok(at(*pull, 1)) == "4\n"


def test_seek_that_fails_says_why(broker, at):
    # Breaks: a script goes on as if it had moved the pullers.
    one_line(at("group", "seek", "test", "lightq", "99"), 2, "no such offset in test yet")
    one_line(at("group", "seek", "missing", "lightq", "end"), 3, "topic not found")
    one_line(at("group", "seek", "test", "lightq", "end", password="wrong"), 4, "password is wrong")


# --- What cannot be -------------------------------------------------------------------------------

@pytest.mark.parametrize("words, told", [
    (["pub", "test", "--json", "{}"], ["--json", "--broker"]),
    (["pub", "test", "--header", "a=b", "x"], ["--header"]),
    (["pub", "test", "--key-separator", ":", "x"], ["--key-separator"]),
    (["pub", "test", "--partition", "0", "x"], ["--partition"]),
    (["pub", "test", "--sync", "x"], ["--sync"]),
    (["sub", "test", "--json"], ["--json"]), (["sub", "test", "--format", "%s"], ["--format"]),
    (["sub", "test", "--from", "beginning"], ["--from"]), (["sub", "test", "--exit"], ["--exit"]),
    (["sub", "test", "--no-create"], ["--no-create"]),
    (["sub", "test", "--lossy"], ["--lossy"]), (["sub", "test", "--read", "durable"], ["--read"]),
    (["sub", "test", "other"], ["one topic"]), (["sub", "test", "--group", "mine"], ["lightq"]),
    (["topic", "create", "x", "--capacity", "1MiB"], ["--capacity"]),
    (["topic", "create", "x", "--durable", "fsync"], ["fsync", "only os"]),
    (["topic", "create", "x"], ["--user"]), (["topic", "create", "x", "--user", "u"], ["LEAT_TOPIC_PASSWORD"]),
    (["topic", "list", "--watch"], ["--watch"]), (["topic", "delete", "x", "--force"], ["--force"]),
    (["topic", "set", "x", "--max-capacity", "1GiB"], ["the broker decides"]),
    (["topic", "shrink", "x"], ["the broker decides"]), (["topic", "info", "a b"], ["'a b'"]),
    (["topic", "list", "--dir", "d"], ["--dir", "--broker"]), (["ls", "--data-dir", "d"], ["--data-dir"]),
    (["--dir", "d", "topic", "info", "x"], ["--dir"]), (["topic", "--data-dir", "d", "info", "x"], ["--data-dir"]),
    (["topic", "create", "x", "--user", "u", "--dir", "d"], ["--dir"]), (["rm", "x", "--dir", "d"], ["--dir"]),
    (["topic", "delete", "x", "--dir", "d"], ["--dir"]), (["pub", "x", "y", "--dir", "d"], ["--dir"]),
    (["sub", "x", "--data-dir", "d"], ["--data-dir"]), (["group", "seek", "x", "lightq", "end", "--dir", "d"], ["--dir"]),
    (["group", "list", "test"], ["one group"]), (["group", "list"], ["one group"]), (["group", "seek", "test", "g", "end"], ["one group"]),
    (["group", "info", "test", "lightq"], ["one group"]), (["group", "create", "test", "x"], ["one group"]),
    (["group", "delete", "test", "lightq"], ["one group"]), (["group", "seek", "test", "a b", "end"], ["'a b'"]),
    (["group", "seek", "test", "lightq", "@2024-05-01"], ["not possible at a broker"]),
    (["group", "seek", "test", "lightq", "1h"], ["not possible at a broker"]),
    (["group", "seek", "test", "lightq", "nowhere"],
     ["not possible at a broker: write beginning, end or an offset"]),
    (["group", "seek", "test", "lightq", "end", "--partition", "0"], ["--partition", "--broker"]),
], ids=lambda value: " ".join(value)[:40])
def test_what_the_protocol_cannot_is_refused(leat, words, told):
    # Breaks: an option is ignored in silence.
    one_line(At(leat, 1)(*words), 2, *told)


def test_password_file_without_a_broker_is_refused(leat, tmp_path):
    # Breaks: who forgets --broker is answered about this machine.
    for words in ["ls"], ["pub", "x", "y"], ["group", "seek", "x", "lightq", "end"]:
        one_line(leat(*words, "--password-file", tmp_path), 2, "--password-file", "--broker")


@pytest.mark.parametrize("uri, words", [
    ("lightq://127.0.0.1", ["a user is missing", "lightq://USER@HOST:PORT"]), ("", ["lightq://USER@HOST:PORT"]),
    ("tcp://a:1", ["--broker: 'tcp://a:1' is not the address of a broker", "lightq://USER@HOST:PORT"]),
    (f"lightq://ann:{SECRET}@127.0.0.1", ["LEAT_PASSWORD"]), ("lightq://ann@:5500", ["'…@:5500'"]),
    (f"lightq://ann:{SECRET}", ["'lightq://ann:…'"]), (f"lightq://{SECRET}@@", ["'…@'"]),
    (f"http://ann:{SECRET}@host:5500/", ["'…@host:5500/'"]), ("127.0.0.1:5500", ["'127.0.0.1:5500'"]),
    ("lightq://ann@127.0.0.1:70000", ["'…@127.0.0.1:70000'"]), ("127.0.0.1", ["'127.0.0.1'"])])
def test_wrong_broker_is_refused(leat, uri, words):
    # Breaks: a password in the wrong place is shown.
    done = leat("topic", "list", "--broker", uri)
    one_line(done, 2, *words)
    assert SECRET not in done.stderr


def test_password_is_needed_and_may_be_in_a_file(broker, at, leat, tmp_path):
    # Breaks: without a password the command asks nobody, or sends an empty one.
    leat.environment.pop("LEAT_PASSWORD", None)
    uri = f"lightq://{USER}@127.0.0.1:{broker.port}"
    one_line(leat("topic", "info", "test", "--broker", uri), 2, USER, "LEAT_PASSWORD", "--password-file")
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n")
    leat("topic", "info", "test", "--broker", uri, "--password-file", file, check=True)
    one_line(leat("topic", "info", "test", "--broker", uri, "--password-file", tmp_path / "none"), 3, "none")
    one_line(at("sub", "test", password="wrong"), 4, "password is wrong")


def test_nothing_is_made_on_this_machine(leat, broker, at, tmp_path):
    # Breaks: a directory of topics appears where only a broker is used.
    leat.environment["LEAT_DIR"] = str(tmp_path / "nowhere")
    ok(at("pub", "test", "hello"))
    ok(at("sub", "test", "--group", "lightq", "--count", 1))
    assert not (tmp_path / "nowhere").exists()


def test_leat_stays_small(leat):
    # Breaks: everybody pays for what few use.
    libraries = subprocess.run(["ldd", leat.executable], capture_output=True, text=True,
                               check=True).stdout.splitlines()
    assert len(libraries) <= 8, libraries


def test_full_topic_at_the_broker_is_told_and_timeout_ends_it(at):
    done = at("pub", "test", "--generate", "10000", "--count", "100000", "--timeout", "1200ms")
    assert done.returncode == 6
    notice, failure = done.stderr.splitlines()
    assert notice.startswith("leat: the broker takes nothing now, probably because topic 'test' is full there")
    assert failure.startswith("leat: nothing could be published for 1200ms: the broker takes nothing now")
    assert failure.endswith(" records were sent before")
