"""If these tests failed, an administrator could not see the topics of a broker, or somebody could keep on using a
password that was changed."""
import resource
import signal
import time

import pytest
import zmq

from broker import (ADMIN, PASSWORD, USER, Bytes, free_ports, subscribed, take, take_pairs,
                    wait_for)
from test_serve_raw import connected

NEW = "N3w-Pa55word"


def as_admin(broker, **fields):
    return {"admin_user_id": ADMIN, "admin_password": broker.admin_password, **fields}


def test_administrator_sees_all_topics(serve):
    # Breaks: nobody knows what there is on a broker.
    broker = serve()
    assert broker.ask(as_admin(broker, cmd="list_topics")) == {
        "cmd": "list_topics", "status": "ok", "topics": []}
    broker.create("b", broker_type="file")
    broker.create("a", user_id="someone")
    wanted = [{"topic": "a", "topic_type": "queue", "user_id": "someone"},
              {"topic": "b", "topic_type": "file", "user_id": USER}]
    assert broker.ask(as_admin(broker, cmd="list_topics"))["topics"] == wanted
    for wrong in ({}, {"admin_user_id": ADMIN, "admin_password": "wrong"},
                  {"admin_user_id": USER, "admin_password": PASSWORD}):
        answer = broker.ask({"cmd": "list_topics", **wrong})
        assert answer == {"cmd": "list_topics", "status": "error", "description": "unauthorized_access"}


def test_hundreds_of_topics_are_listed(serve):
    # Breaks: an answer that is longer than a buffer is cut.
    broker = serve()
    for i in range(100):
        broker.create(f"{i:03}-" + "x" * 150)
    with Bytes(broker.port) as client:
        topics = client.ask(as_admin(broker, cmd="list_topics"))["topics"]
    assert [each["topic"][:3] for each in topics] == [f"{i:03}" for i in range(100)]


@pytest.mark.parametrize("by_admin", [False, True])
def test_changed_password_counts_at_once_and_after_a_restart(serve, by_admin):
    # Breaks: whoever has the old password is still let in.
    broker = serve()
    broker.create("test")
    push = broker.producer("test")
    token = broker.ask(broker.join_command("test", "pub", connection_type="socket", leat=1))["token"]
    change = {"cmd": "change_password", "topic": "test", "new_password": NEW}
    change |= as_admin(broker) if by_admin else {"user_id": USER, "password": PASSWORD}
    assert broker.ask(change) == {"cmd": "change_password", "status": "ok", "topic": "test"}
    push.send(b"from before")  # Who is connected stays.
    broker.stats_become("test", with_password=NEW, messages_received=1)
    for _ in range(2):
        answer = broker.ask(broker.join_command("test", "pub", PASSWORD))
        assert answer["description"] in ("unauthorized_access", "too many attempts")
        uri = broker.join("test", "pull", NEW)
        pull, watch = broker.connect(zmq.PULL, uri, NEW)
        watch.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        pull.close()
        other = broker.ask(broker.join_command("test", "pub", NEW, connection_type="socket", leat=1))
        assert other["token"] != token
        broker.stop()
        broker.start()


def test_a_limit_of_file_sizes_is_an_error_and_does_not_end_the_broker(serve):
    # Breaks: under `ulimit -f`, the kernel's signal ends the broker, and everybody's connections with it.
    broker = serve()
    broker.create("test")
    change = {"cmd": "change_password", "topic": "test", "new_password": NEW, "user_id": USER, "password": PASSWORD}
    pid = broker.process.pid
    limit = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, limit[1]))
    answer = broker.ask(change)
    assert answer["status"] == "error" and "broker.db" in answer["description"], answer
    resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)
    broker.join("test", "pull")  # The old password still counts.
    assert broker.ask(change)["status"] == "ok"
    broker.join("test", "pull", NEW)


def test_who_joined_with_the_old_password_has_not_joined_with_the_new_one(serve):
    # Breaks: with --data-auth joined, a password is changed and those who had it still come in.
    broker = serve("--data-auth", "joined")
    broker.create("test")
    uri = broker.join("test", "pull")
    change = {"cmd": "change_password", "topic": "test", "new_password": NEW, **as_admin(broker)}
    assert broker.ask(change)["status"] == "ok"
    pull, watch = broker.connect(zmq.PULL, uri, None)
    watch.until(zmq.EVENT_DISCONNECTED)
    broker.join("test", "pull", NEW)
    wait_for(lambda: zmq.EVENT_HANDSHAKE_SUCCEEDED in watch.poll(10), "another try")


def test_password_is_changed_only_by_those_who_may(serve):
    # Breaks: anybody takes over a topic.
    broker = serve()
    broker.create("test")
    change = {"cmd": "change_password", "topic": "test", "new_password": NEW}
    for wrong in ({}, {"user_id": USER, "password": "wrong"}, {"user_id": ADMIN, "password": PASSWORD},
                  {"admin_user_id": ADMIN, "admin_password": PASSWORD}):
        answer = broker.ask({**change, **wrong})
        assert answer["description"] in ("unauthorized_access", "too many attempts"), answer
    for nothing in ("", None, 5):
        answer = broker.ask({**change, "new_password": nothing, **as_admin(broker)})
        assert answer["description"] == "new_password is missing"
    answer = broker.ask({**change, "topic": "none", **as_admin(broker)})
    assert answer["description"] == "topic not found"
    answer = broker.ask({**change, "new_password": "x" * 5000, "user_id": USER, "password": PASSWORD})
    assert answer["status"] == "error"
    assert broker.join("test", "pull")


def test_leaving_takes_back_what_joining_allowed(serve):
    # Breaks: an address may come to the data ports for longer than its client wants.
    broker = serve("--data-auth", "joined")
    broker.create("test")
    uri = broker.join("test", "pull")
    first, watch = broker.connect(zmq.PULL, uri, None)
    watch.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    leave = {"cmd": "leave", "topic": "test", "user_id": USER, "password": PASSWORD}
    assert broker.ask(leave) == {"cmd": "leave", "status": "ok", "topic": "test"}
    assert broker.ask(leave)["status"] == "ok"  # Twice changes nothing.
    second, watch = broker.connect(zmq.PULL, uri, None)
    watch.until(zmq.EVENT_DISCONNECTED)
    broker.join("test", "pub")
    wait_for(lambda: zmq.EVENT_HANDSHAKE_SUCCEEDED in watch.poll(10), "another try")
    push, _ = broker.connect(zmq.PUSH, broker.join("test", "pub"), None)
    for i in range(10):
        push.send(b"%d" % i)
    broker.stats_become("test", queue_size=0, messages_received=10)
    assert len(take(first, 5) + take(second, 5)) == 10
    assert broker.ask({**leave, "password": "wrong"})["description"] == "unauthorized_access"


# --- On the same machine --------------------------------------------------------------------------

def test_unix_socket_is_the_same_administration(serve):
    # Breaks: local tools need a port that other users of the machine reach, too.
    broker = serve("--data-auth", "joined")
    broker.create("test")
    path = broker.state / "lightq.sock"
    with Bytes(path) as local:
        assert local.ask({"cmd": "ping"}) == b"pong"
        answer = local.ask(broker.join_command("test", "pub"))
        assert answer["status"] == "ok" and answer["bind_uri"].startswith("tcp://127.0.0.1:")
        push, _ = broker.connect(zmq.PUSH, answer["bind_uri"], password=None)
        push.send(b"hello")  # By this join: it counts for the loopback address.
        broker.stats_become("test", messages_received=1)
    other = broker.run("--state-dir", f"{broker.state}-2", "--lightq-socket", path,
                       "--lightq-port", str(free_ports(1)))
    assert other.returncode == 3 and f"another process listens at {path}" in other.stderr
    broker.stop(signal.SIGKILL)
    assert path.is_socket()
    broker.start()
    with Bytes(path) as local:
        assert local.ask({"cmd": "ping"}) == b"pong"
    broker.stop()
    path.unlink()
    path.write_text("precious")
    done = broker.run()
    assert done.returncode == 2 and "is no socket" in done.stderr
    assert path.read_text() == "precious"


def test_client_is_told_an_address_where_the_broker_listens(serve):
    # Breaks: who asks at the Unix socket is sent to an address at which nobody is.
    broker = serve("--lightq-addresses", "127.0.0.2")
    with Bytes(broker.state / "lightq.sock") as local:
        assert local.ask({"cmd": "create_topic", "topic": "test", "user_id": USER, "password": PASSWORD,
                          "broker_type": "queue", **as_admin(broker)})["status"] == "ok"
        uri = local.ask(broker.join_command("test", "pub"))["bind_uri"]
        assert uri.startswith("tcp://127.0.0.2:")
        push, watch = broker.connect(zmq.PUSH, uri)
        watch.until(zmq.EVENT_HANDSHAKE_SUCCEEDED)


def test_client_on_the_machine_is_told_where_the_topic_is(serve, leat):
    # Breaks: a program beside the broker sends every message through two sockets.
    broker = serve()
    for kind in ("queue", "file"):
        broker.create(kind, broker_type=kind)
        answer = broker.ask(broker.join_command(kind, "sub", connection_type="shm"))
        assert answer == {"cmd": "join", "status": "ok", "topic": kind,
                          "bind_uri": f"shm:{broker.dir}/{kind}", "directory": str(broker.dir),
                          "data_directory": str(broker.data)}
        push = broker.producer(kind)
        push.send(b"through the broker")
        broker.stats_become(kind, messages_received=1)
        got = leat("sub", kind, "--from", "beginning", "-n", "1", "--data-dir",
                   answer["data_directory"])
        assert got.stdout == "through the broker\n"
    assert broker.ask(broker.join_command("queue", "sub", "wrong", connection_type="shm"))[
        "description"] == "unauthorized_access"


# --- Rights while clients come and go -------------------------------------------------------------

def grant(broker, topic, right, **more):
    return broker.ask({"cmd": "grant", "topic": topic, "user_id": "bob", "right": right,
                       **as_admin(broker), **more})


def command(name, body):
    return bytes([4, len(name) + 1 + len(body), len(name)]) + name + body


def test_right_that_ends_during_a_login_does_not_open_the_port(serve):
    # Breaks: whoever is slow to log in keeps a right that was taken away.
    broker = serve()
    broker.create("test")
    port = int(broker.join("test", "pub").rpartition(":")[2])
    for ends in ("revoke", "narrow", "password"):
        assert grant(broker, "test", "write", password="bobs")["status"] == "ok"
        with Bytes(port) as client:
            client.send(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"PLAIN".ljust(20, b"\0") + bytes(32) +
                        command(b"HELLO", b"\x03bob\x04bobs"))
            client.read(64)
            welcome = command(b"WELCOME", b"")
            assert client.read(len(welcome)) == welcome
            if ends == "revoke":
                answer = broker.ask({"cmd": "revoke", "topic": "test", "user_id": "bob",
                                     **as_admin(broker)})
            elif ends == "narrow":
                answer = grant(broker, "test", "read")
            else:
                answer = broker.ask({"cmd": "change_password", "topic": "test", "user_id": "bob",
                                     "new_password": "other", **as_admin(broker)})
            assert answer["status"] == "ok", answer
            client.send(command(b"INITIATE", b"\x0bSocket-Type\x00\x00\x00\x04PUSH") +
                        b"\x00\x04late")
            assert client.is_closed()
    assert broker.stats("test")["messages_received"] == 0


@pytest.mark.parametrize("changed_by", ["administrator", "user", "grant"])
def test_right_that_ends_closes_what_an_earlier_password_opened(serve, changed_by):
    # Breaks: whoever is thrown out, password first, goes on reading and writing.
    broker = serve()
    broker.create("test")
    assert grant(broker, "test", "read_write", password="bobs")["status"] == "ok"
    bob = {"password": "bobs", "user_id": "bob"}
    clients = [connected(broker, "test", role, with_login=bob) for role in ("pub", "sub")]
    with connected(broker, "test", "sub") as other:
        if changed_by == "grant":
            answer = grant(broker, "test", "read_write", password="other")
        else:
            login = as_admin(broker) if changed_by == "administrator" else {"password": "bobs"}
            answer = broker.ask({"cmd": "change_password", "topic": "test", "user_id": "bob",
                                 "new_password": "other", **login})
        assert answer["status"] == "ok", answer
        clients[0].send_message(b"still")
        clients[0].counted(1)
        assert grant(broker, "test", "read")["status"] == "ok"
        assert clients[0].is_closed()
        assert clients[1].read_messages(1) == [b"still"]
        answer = broker.ask({"cmd": "revoke", "topic": "test", "user_id": "bob", **as_admin(broker)})
        assert answer["status"] == "ok", answer
        assert clients[1].is_closed()
        assert other.read_messages(1) == [b"still"]
        with connected(broker, "test", "pub") as own:
            own.send_message(b"after")
            own.counted(1)
        assert other.read_messages(1) == [b"after"]
    answer = broker.ask({"cmd": "revoke", "topic": "test", "user_id": USER, **as_admin(broker)})
    assert answer["description"] == "the topic's user may do everything"


def test_password_that_is_no_string_makes_no_open_topic(serve):
    # Breaks: the topic of whoever wrote 12345 without quotes is everybody's.
    broker = serve()
    for wrong in (12345, None, ["x"], True):
        answer = broker.ask({"cmd": "create_topic", "topic": "test", "user_id": USER, "password": wrong,
                             "broker_type": "queue", **as_admin(broker)})
        assert answer["description"] == "password is to be a string"
        assert grant(broker, "test", "read", password=wrong)["description"] == "password is to be a string"
    assert broker.ask(as_admin(broker, cmd="list_topics"))["topics"] == []


def test_offset_of_a_seek_may_be_a_number(serve):
    # Breaks: an offset is refused with a sentence that says that offsets are right.
    broker = serve()
    broker.create("test")
    with connected(broker, "test", "pub") as producer, connected(broker, "test", "pull") as puller:
        producer.send_message(b"0", b"1", b"2")
        producer.counted(3)
        assert puller.read_messages(3) == [b"0", b"1", b"2"]
        for to in (1, "1"):
            answer = broker.ask({"cmd": "seek", "topic": "test", "user_id": USER,
                                 "password": PASSWORD, "to": to})
            assert answer["status"] == "ok", answer
            assert puller.read_messages(2) == [b"1", b"2"]
        answer = broker.ask({"cmd": "seek", "topic": "test", "user_id": USER, "password": PASSWORD,
                             "to": -1})
        assert answer["description"] == "to is one of beginning, end, or an offset"


def test_topic_that_overwrites_has_subscribers_and_no_pullers(serve, leat):
    # Breaks: local programs that keep the latest values only cannot be watched from elsewhere.
    broker = serve()
    leat("topic", "create", "latest", "--policy", "overwrite", "--capacity", "256KiB", check=True)
    assert grant(broker, "latest", "read_write", password=PASSWORD, user_id=USER)["status"] == "ok"
    push, sub = broker.producer("latest"), broker.subscriber("latest")
    subscribed(push, sub)
    push.send(b"now")
    assert take_pairs(sub, 1) == [(b"latest", b"now")]
    answer = broker.ask(broker.join_command("latest", "pull"))
    assert answer["status"] == "error" and "overwrites its oldest records" in broker.log()


def test_grant_cuts_off_nobody(serve):
    # Breaks: giving one user a right closes the connections of all others.
    broker = serve("--data-auth", "joined")
    broker.plain = False
    broker.create("test")
    request = broker.admin()
    uri = broker.ask(broker.join_command("test", "pull"), request)["bind_uri"]
    pull, _ = broker.connect(zmq.PULL, uri, password=None)
    broker.stats_become("test", subscribers_count=1)
    request.close()  # It came by this one's join.
    time.sleep(0.1)
    assert grant(broker, "test", "read", password="bobs")["status"] == "ok"
    assert grant(broker, "test", "read_write")["status"] == "ok"
    assert broker.stats("test")["subscribers_count"] == 1
    broker.producer("test").send(b"still")
    assert take(pull, 1) == [b"still"]


def test_grant_that_is_refused_changes_nothing(serve, leat):
    # Breaks: a typing error makes a local topic one of the broker's.
    broker = serve()
    leat("topic", "create", "local", check=True)
    assert grant(broker, "local", "read")["description"] == "password is missing: the user has none yet"
    listed = broker.ask({"cmd": "list_topics", **as_admin(broker)})["topics"]
    assert listed == [{"topic": "local", "topic_type": "local", "user_id": ""}]


def test_topic_that_a_local_program_deleted_is_made_anew(serve, leat):
    # Breaks: clients that try again and again never get in.
    broker = serve()
    broker.create("test")
    broker.join("test", "pub")
    for role in ("sub", "pull", "sub"):
        leat("topic", "delete", "test", "--force", check=True)
        broker.join("test", role)
    push, sub = broker.producer("test"), broker.subscriber("test")
    subscribed(push, sub)
