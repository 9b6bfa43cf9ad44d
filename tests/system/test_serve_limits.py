"""If these tests failed, `leat serve` would run out of connections or topics without saying so, could not be stopped, its clients
would hang at one that hangs, or LightQ's programs would read other bytes than LightQ sent."""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
import zmq

from broker import ADMIN, PASSWORD, USER, WAIT_SECONDS, Bytes, subscribed, take, take_pairs, wait_for
from test_cli import one_line
from test_serve_raw import Raw, connected, join

KEPT_FOR_COMMANDS = 100  # Connections beyond the limits, so that an administrator can always come.


# --- Topics and connections -----------------------------------------------------------------------

def created(broker, topic):
    return broker.ask({"cmd": "create_topic", "admin_user_id": ADMIN, "topic": topic, "user_id": USER,
                       "admin_password": broker.admin_password, "password": PASSWORD})


def test_topics_have_a_limit(serve):
    # Breaks: a program that makes topics in a loop takes all ports and the disk (LightQ's topics take 160 MiB each).
    broker = serve("--limits-topics", "3")
    for topic in "one", "two", "three":
        broker.create(topic)
    refused = {"cmd": "create_topic", "status": "error",
               "description": "there are 3 topics already, the limit"}
    assert created(broker, "four") == refused
    assert created(broker, "one")["description"] == "topic already exists"
    push, pull = broker.producer("one"), broker.puller("one")
    push.send(b"as before")
    assert take(pull, 1) == [b"as before"]
    broker.stop()
    broker.start()
    assert created(broker, "four") == refused
    assert broker.ask({"cmd": "delete_topic", "topic": "two", "admin_user_id": ADMIN,
                       "admin_password": broker.admin_password})["status"] == "ok"
    broker.create("four")
    assert created(broker, "five") == refused
    assert broker.join("four", "pull")


def is_refused(client):
    """Whether the broker closes a connection at once and says nothing on it."""
    try:
        return client.socket.recv(1) == b""
    except ConnectionError:
        return True


def comes_in(broker, port, token, source="127.0.0.1"):
    """A puller from an address of this machine; None if it is refused."""
    client = Raw.__new__(Raw)
    client.socket = socket.create_connection(("127.0.0.1", port), WAIT_SECONDS, (source, 0))
    try:
        if client.hello(type="pull", token=token) == {"status": "ok", "topic": "test"}:
            return client
    except (AssertionError, ConnectionError):  # It was closed.
        pass
    client.close()
    assert broker.process.poll() is None
    return None


@pytest.mark.parametrize("flag, line", [
    ("--limits-connections", "there are 5 connections, the limit"),
    ("--limits-connections-per-address", "its address has 5 connections, the limit")])
def test_connections_have_a_limit(serve, flag, line):
    # Breaks: clients that connect again and again take all descriptors, and nobody else comes in, nor sees why.
    broker = serve(flag, "5")
    broker.create("test")
    port, token = join(broker, "test", "pull")
    inside = [comes_in(broker, port, token) for _ in range(4)]  # The fifth is that of the commands.
    assert None not in inside and line not in broker.log()
    assert comes_in(broker, port, token) is None
    wait_for(lambda: f"[warning] 127.0.0.1:{{}} is refused: {line}\n".split("{}")[1] in broker.log(), "the reason")
    stranger = comes_in(broker, port, token, "127.0.0.2")
    assert (stranger is None) == (flag == "--limits-connections")
    # Those who are inside go on.
    with Bytes(broker.port) as admin:
        assert admin.ask({"cmd": "ping"}) == b"pong"
        assert broker.stats("test")["subscribers_count"] == 4 + (stranger is not None)
    for _ in range(3):  # One leaves, one comes, and the next one has to stay outside again.
        inside.pop(0).close()
        inside.append(wait_for(lambda: comes_in(broker, port, token), "its place"))
        assert comes_in(broker, port, token) is None
    if stranger is not None:
        stranger.close()
    inside.pop().close()
    producer = wait_for(lambda: connected_or_none(broker, "test"), "a producer's place")
    producer.send_message(*[b"%d" % i for i in range(300)])
    producer.counted(300)
    got = []
    for puller in inside:
        puller.socket.settimeout(0.2)
        try:
            while True:
                got.append(puller.read_message())
        except socket.timeout:
            pass
    assert sorted(got) == sorted(b"%d" % i for i in range(300))
