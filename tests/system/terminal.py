"""A command on a terminal of its own.

    with Terminal(leat, "top", columns=60, rows=10) as terminal:
        terminal.until("1 topic")
        terminal.write("q")
        assert terminal.process.wait(20) == 0
"""
import fcntl
import os
import pty
import select
import struct
import termios
import time


class Terminal:
    def __init__(self, leat, *arguments, columns=80, rows=24, environment=None):
        self.fd, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.text = ""
        usual = {name: value for name, value in leat.environment.items() if name != "NO_COLOR"}
        # In a session of its own: the terminal becomes the one that Ctrl-C comes from.
        self.process = leat.start(
            *arguments, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs,
            env={**usual, "TERM": "xterm", **(environment or {})},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        os.close(self.theirs)

    def write(self, keys):
        os.write(self.fd, keys.encode())

    def is_echoing(self):
        return bool(termios.tcgetattr(self.theirs)[3] & termios.ECHO)

    def until(self, wanted, seconds=20):
        """All that was shown so far, once `wanted` (a string or a function of the text) is there."""
        is_there = wanted if callable(wanted) else lambda text: wanted in text
        end = time.monotonic() + seconds
        while not is_there(self.text):
            left = end - time.monotonic()
            assert left > 0, f"only this came: {self.text[-500:]!r}"
            self.read(left)
        return self.text

    def all(self, seconds=20):
        """All that it shows until it ends."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it goes on: {self.text[-500:]!r}"
            self.read(0.05)
        while self.read(0):
            pass
        return self.text

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        self.text += os.read(self.fd, 1 << 16).decode()
        return True
