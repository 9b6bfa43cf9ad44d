"""What `leat` does with standard streams that are closed, full, or shared. If these tests failed, output could be lost without
an error, or a topic's file could get what was meant for a terminal."""
import os
import select
import subprocess

import pytest

from test_store import one_line


def test_output_that_cannot_be_written_is_an_error(leat):
    leat("topic", "create", "t", check=True)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([leat.executable, "topic", "list"], env=leat.environment, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 6 and "standard output" in done.stderr


@pytest.mark.parametrize("command", [["--help"], ["topic", "list"], ["topic", "info", "t"], ["group", "list", "t"]],
                         ids=" ".join)
def test_output_that_others_made_non_blocking_is_whole(leat, command):
    leat("topic", "create", "t", check=True)
    leat("group", "create", "t", "g", check=True)
    expected = leat(*command, check=True).stdout
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        junk = b""
        with pytest.raises(BlockingIOError):
            while True:
                os.write(writer, b"." * 4096)
                junk += b"." * 4096
        process = leat.start(*command, stdout=writer)
        with pytest.raises(subprocess.TimeoutExpired):  # It waits for room.
            process.wait(timeout=0.3)
        assert not os.get_blocking(writer)
        os.close(writer)
        writer = None
        with os.fdopen(os.dup(reader), "rb") as output:
            assert output.read() == junk + expected.encode()
        assert process.wait(timeout=60) == 0 and process.stderr.read() == ""
    finally:
        os.close(reader)
        if writer is not None:
            os.close(writer)


def test_a_file_that_others_made_non_blocking_is_not_overwritten(leat, tmp_path):
    with open(tmp_path / "out", "w+b", buffering=0) as out:
        out.write(b"before\n")
        os.set_blocking(out.fileno(), False)
        subprocess.run([leat.executable, "--version"], env=leat.environment, stdout=out, check=True, timeout=60)
        out.write(b"after\n")
        out.seek(0)
        assert out.read().decode() == f"before\n{leat('--version', check=True).stdout}after\n"


def test_output_to_a_non_blocking_pseudoterminal_arrives(leat):
    master, terminal = os.openpty()
    try:
        os.set_blocking(master, False)
        subprocess.run([leat.executable, "--version"], env=leat.environment, stdout=master, check=True, timeout=60)
        assert select.select([terminal], [], [], 20)[0]  # Else it went to another one.
        assert os.read(terminal, 1000).decode() == leat("--version", check=True).stdout
    finally:
        os.close(master)
        os.close(terminal)


def without_streams(leat, streams, *arguments):
    """Runs the executable with some standard streams closed (such as ">&-"); the others are pipes."""
    return subprocess.run(["sh", "-c", f'exec "$0" "$@" {streams}', leat.executable, *arguments],
                          env=leat.environment, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def test_closed_streams_never_become_a_topic(leat):
    """The next file that is opened gets the number of a closed stream, and may be a topic's file."""
    leat("pub", "t", "--generate", "100", "--count", "1000", check=True)
    control = (leat.directory / "t" / "control").stat()
    read = ["sub", "t", "--from", "beginning", "--exit"]
    expected = leat(*read, check=True).stdout
    one_line(without_streams(leat, ">&-", *read), 1, "standard output")
    one_line(without_streams(leat, ">&- <&-", *read), 1, "standard output")
    done = without_streams(leat, ">&- 2>&- <&-", *read)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    for command in (["topic", "list"], ["doctor"], ["demo", "--records", "10", "--runs", "1"]):
        one_line(without_streams(leat, ">&-", *command), 1, "standard output")
    one_line(without_streams(leat, "<&-", "pub", "t"), 1, "standard input")
    assert (leat.directory / "t" / "control").stat().st_size == control.st_size
    assert leat(*read, check=True).stdout == expected


def test_failure_that_nobody_can_read_keeps_its_exit_code(leat):
    for streams in ("2>&-", "2>/dev/full"):
        assert without_streams(leat, streams, "topic", "info", "nope").returncode == 3
        assert without_streams(leat, streams, "pub", f"made-{len(streams)}").returncode == 0
        assert without_streams(leat, streams, "topic", "create", "t", "--capacity", "1").returncode == 2
