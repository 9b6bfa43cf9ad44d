"""If these tests failed, clients that nobody let in, or that went without a word, would take something of `leat serve` from
all others: its trust, its memory, its descriptors, its messages."""
import json
import socket
import struct

from broker import Bytes
from test_serve_raw import Raw


def framed(*payloads):
    return b"".join(struct.pack("<I", len(payload)) + payload for payload in payloads)


def test_connection_that_is_reset_at_once_is_not_taken_for_one_of_this_machine(serve):
    # Breaks: with --data-auth joined, a client from anywhere publishes: it resets its connection, the broker cannot ask for
    # its address any more, and trusts it as it trusts 127.0.0.1, which has joined.
    broker = serve("--data-auth", "joined")
    broker.create("test")
    with Bytes(broker.port) as admin:
        command = broker.join_command("test", "pub", connection_type="socket")
        port = int(admin.ask(command)["bind_uri"].rpartition(":")[2])
        hello = json.dumps({"type": "pub"}).encode()
        for _ in range(500):
            stranger = Bytes(port, framed(hello, b"spoofed"), source="127.0.0.9")
            stranger.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stranger.close()
        joined = Raw(port, framed(hello, b"right"))
        assert json.loads(joined.read_message())["status"] == "ok" and joined.read_count() == 1
        joined.close()
        assert broker.stats("test")["messages_received"] == 1
