"""If these tests failed, what others chose (names, signals, rights, streams) would break a command's output, lose
what it has to say, or be blamed on the wrong thing."""
import grp
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from terminal import Terminal
from test_cli import NOBODY, info, one_line, run_as, wait_until
from test_pub_sub import read_all, send


# --- Names ----------------------------------------------------------------------------------------

def test_member_whose_name_is_not_utf8_spoils_no_json(leat):
    leat("pub", "t", "x", check=True)
    subprocess.run([leat.executable, "group", "create", "t", "g"], env=leat.environment, check=True)
    member = leat.start("sub", "t", "--group", "g", "--member", b"a\xffb".decode(errors="surrogateescape"))
    wait_until(lambda: json.loads(leat("group", "info", "t", "g", "--json", check=True).stdout)["members"])
    for command in (["group", "info", "t", "g"], ["group", "list", "t"]):
        assert "a\ufffdb" in leat(*command, "--json", check=True).stdout
    assert member.poll() is None


def test_path_that_is_not_utf8_spoils_no_json(leat, tmp_path):
    data = os.fsencode(tmp_path) + b"/data\xff"
    leat.environment["LEAT_DATA_DIR"] = os.fsdecode(data)
    leat("topic", "create", "t", "--durable", "os", check=True, text=False)
    publisher = leat.start("pub", "t")
    wait_until(lambda: info(leat, "t")["participants"])
    assert json.loads(leat("ls", "--json", check=True).stdout)[0]["name"] == "t"
    assert "/data\ufffd" in leat("topic", "info", "t", "--json", check=True).stdout
    json.loads(leat("doctor", "--json").stdout)
    publisher.communicate(timeout=60)
    json.loads(leat("fsck", "t", "--json", check=True).stdout)


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\nb", "\x7f", "\x9b31m"])
def test_member_has_no_name_that_a_terminal_obeys(leat, name):
    leat("pub", "t", "x", check=True)
    one_line(leat("sub", "t", "--group", "g", "--member", name), 2, "--member", "control character")


# --- Signals --------------------------------------------------------------------------------------

@pytest.mark.parametrize("apart", [0, 0.0002, 0.05])
def test_signal_that_comes_twice_loses_no_message(leat, apart):
    leat("topic", "create", "t", check=True)
    for turn in range(1, 6):
        publisher = leat.start("pub", "t")
        send(publisher, "one\ntwo\n")
        wait_until(lambda end=2 * turn: info(leat, "t")["partitions"][0]["end"] == end)
        publisher.send_signal(signal.SIGINT)
        time.sleep(apart)
        publisher.send_signal(signal.SIGINT)
        assert (publisher.wait(20), publisher.stderr.read()) == (130, "leat: stopped by SIGINT; 2 lines were published\n")


@pytest.mark.parametrize("apart", [0, 0.0002])
def test_signal_that_comes_twice_leaves_the_terminal_as_it_was(leat, apart):
    for _ in range(5):
        with Terminal(leat, "top") as terminal:
            terminal.until("0 topics")
            wait_until(lambda it=terminal: not it.is_echoing())
            terminal.process.send_signal(signal.SIGINT)
            time.sleep(apart)
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.process.wait(20) == 0
            assert terminal.is_echoing()


# --- Streams --------------------------------------------------------------------------------------

def test_input_that_does_not_block_is_waited_for(leat):
    read, write = os.pipe()
    os.set_blocking(read, False)
    publisher = leat.start("pub", "t", stdin=read)
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        pipe.write("one\n")
        pipe.flush()
        wait_until(lambda: leat("topic", "info", "t").returncode == 0 and read_all(leat, "t") == "one\n")
        time.sleep(0.1)
        pipe.write("two\n")
    assert (publisher.wait(20), publisher.stderr.read()) == (0, "leat: created topic 't' (8 MiB, policy block)\n")
    assert read_all(leat, "t") == "one\ntwo\n"


@pytest.mark.parametrize("kind", ["dumb", ""])
def test_terminal_without_a_cursor_gets_lines(leat, kind):
    with Terminal(leat, "top", environment={"TERM": kind}) as terminal:
        text = terminal.until("0 topics")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(20) == 0
    assert "\x1b" not in text


def test_signal_ends_what_nobody_reads(leat):
    read, write = os.pipe()
    os.set_blocking(write, False)
    with pytest.raises(BlockingIOError):
        while os.write(write, b"x" * 4096):
            pass
    os.set_blocking(write, True)
    watch = leat.start("top", stdout=write)
    wait_until(lambda: "pipe_write" in Path(f"/proc/{watch.pid}/wchan").read_text() or watch.poll() is not None)
    watch.terminate()
    assert (watch.wait(20), watch.stderr.read()) == (0, "")
    os.close(read)
    os.close(write)


# --- Rights ---------------------------------------------------------------------------------------

@pytest.fixture
def shared(leat, as_root):
    """A directory in which all may make topics, and only owners may delete them."""
    leat.directory.chmod(0o1777)
    return leat.directory


def test_directory_and_not_the_topic_is_blamed(leat, as_root):
    leat.directory.chmod(0o755)
    for command in (["pub", "t", "x"], ["topic", "create", "t"],
                    ["topic", "create", "t", "--mode", "0660", "--group", grp.getgrgid(NOBODY).gr_name]):
        one_line(run_as(leat, NOBODY, *command, directory=leat.directory), 4, "topic 't' is not in",
                 "you may not create one there", f"ls -ld {leat.directory}")


def test_sticky_bit_and_not_the_mode_is_blamed(leat, shared):
    leat("topic", "create", "t", "--mode", "0666", check=True)
    one_line(run_as(leat, NOBODY, "rm", "t", directory=shared), 4, "belongs to another user", "sticky bit")
    assert info(leat, "t")


def test_group_can_be_made_by_all_who_may_write(leat, shared):
    leat("topic", "create", "t", "--mode", "0666", check=True)
    assert run_as(leat, NOBODY, "pub", "t", "x", directory=shared).returncode == 0
    made = run_as(leat, NOBODY, "group", "create", "t", "g", "--from", "beginning", directory=shared)
    assert (made.returncode, made.stderr) == (0, "")
    assert leat("sub", "t", "--group", "g", "--exit", check=True).stdout == "x\n"


def test_sticky_bit_of_the_data_directory_is_blamed(leat, shared):
    data = shared / "+data"
    data.mkdir()
    data.chmod(0o1777)
    shared.chmod(0o777)
    leat("topic", "create", "t", "--durable", "os", "--mode", "0666", check=True)
    one_line(run_as(leat, NOBODY, "rm", "t", directory=shared), 4, "belongs to another user", "sticky bit", str(data))


def test_group_of_files_that_cannot_be_set_is_no_success(leat, shared):
    for name, durable in ("t", []), ("d", ["--durable", "os"]):
        (shared / "+data").mkdir(exist_ok=True)
        (shared / "+data").chmod(0o777)
        one_line(run_as(leat, NOBODY, "topic", "create", name, "--mode", "0666", "--group", "root", *durable,
                        directory=shared), 4, "--group", "must be one of your own groups")
    assert leat("ls", check=True).stdout == ""


def test_dead_letters_are_for_all_who_may_use_the_topic(leat, shared):
    leat("topic", "create", "t", "--mode", "0666", check=True)
    leat("group", "create", "t", "g", "--max-deliveries", "1", check=True)
    for user, value in (None, "a"), (NOBODY, "b"):
        leat("pub", "t", value, check=True)
        command = ["sub", "t", "--group", "g", "-n", "1", "--format", "%s"]
        read, write = os.pipe()
        os.close(read)  # It cannot write the record out, and requeues it.
        subprocess.run([leat.executable, *command], env=leat.environment, stdout=write, stderr=subprocess.PIPE,
                       user=user, group=user, extra_groups=None if user is None else [], timeout=60, check=False)
        os.close(write)
        done = run_as(leat, user or 0, "sub", "t", "--group", "g", "--exit", directory=shared)
        assert (done.returncode, done.stdout) == (0, "")
    assert sorted(read_all(leat, "t.g.dead").split()) == ["a", "b"]


@pytest.mark.parametrize("directory", ["/", "/proc", "/sys"])
def test_data_directory_of_the_system_is_refused(leat, directory):
    one_line(leat("--data-dir", directory, "topic", "create", "t", "--durable", "os"), 4,
             f"{directory} is refused", "--data-dir or LEAT_DATA_DIR")
    assert not os.path.lexists("/t")


@pytest.mark.parametrize("command", [["ls"], ["topic", "info", "t"], ["top", "-n", "1"], ["rm", "t"], ["pub", "t", "x"],
                                     ["sub", "t"]], ids=" ".join)
def test_mistyped_data_directory_hides_no_topics(leat, tmp_path, command):
    leat("topic", "create", "t", "--durable", "os", check=True)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for name, code, words in (("typo", 3, "there is no directory"), ("file", 2, "Not a directory"),
                              ("file/below", 2, "Not a directory"), ("link", 3, "a link to nothing")):
        one_line(leat("--data-dir", tmp_path / name, *command), code, words, f"{tmp_path}/{name}", "--data-dir")
    assert leat("ls", check=True).stdout.count("\nt ") == 1


@pytest.mark.parametrize("command", [["topic", "info", "t"], ["rm", "t"], ["sub", "t", "--exit"], ["group", "list", "t"],
                                     ["backup", "t", "/tmp/x"]], ids=" ".join)
def test_wrong_data_directory_of_the_environment_is_named(leat, leat_dir, tmp_path, command):
    """And not only the directory of topics, which is right."""
    leat("topic", "create", "t", "--durable", "os", check=True)
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    for name, words in (("typo", "there is no directory {}, which LEAT_DATA_DIR names"),
                        ("file", "cannot use {}, which LEAT_DATA_DIR names: Not a directory")):
        leat.environment["LEAT_DATA_DIR"] = str(tmp_path / name)
        one_line(leat(*command), 3, f"no topic 't' in {leat_dir}", words.format(tmp_path / name))
    assert "durable topics are not shown: cannot use" in leat("ls", check=True).stderr
    leat("topic", "create", "in-memory", check=True)
    for option in ([], ["--data-dir", tmp_path / "other"]):
        leat.environment["LEAT_DATA_DIR"] = str(tmp_path / ("file" if option else "other"))
        done = leat(*command, *option)
        one_line(done, 3, f"no topic 't' in {leat_dir} or {tmp_path}/other")
        assert "LEAT_DATA_DIR" not in done.stderr


@pytest.mark.parametrize("command", ["fsck", "dump"])
def test_topic_in_memory_has_no_files_wherever_they_would_be(leat, leat_dir, command):
    leat("topic", "create", "t", check=True)
    one_line(leat(command, "t"), 2, "topic 't' is in memory only")
    (leat_dir / "+data").mkdir()
    one_line(leat(command, "t"), 2, "topic 't' is in memory only")
    one_line(leat(command, "u"), 3, f"no durable topic 'u' in {leat_dir}/+data")


def test_directory_of_the_kernel_is_no_data_directory(leat):
    for command in (["ls"], ["topic", "info", "t"], ["topic", "create", "t"]):
        one_line(leat("--data-dir", "/proc", *command), 4, "/proc is refused", "--data-dir")


def test_each_directory_that_may_not_be_written_is_named_itself(leat, leat_dir, tmp_path, as_root):
    data = leat_dir / "data"
    data.mkdir()
    create = ["topic", "create", "t", "--durable", "os", "--capacity", "64KiB", "--data-dir", data]
    for topics, files in ((0o755, 0o777), (0o777, 0o755)):
        leat_dir.chmod(topics)
        data.chmod(files)
        done = run_as(leat, NOBODY, *create, directory=leat_dir)
        wrong, right = (leat_dir, data) if files == 0o777 else (data, leat_dir)
        assert done.returncode == 4 and done.stderr.count("\n") == 1, done.stderr
        assert re.search(rf"{wrong}[ ):;]", done.stderr) and not re.search(rf"{right}[ ):;]", done.stderr), done.stderr


def test_directory_above_the_data_directory_is_named(leat, leat_dir, as_root):
    leat_dir.chmod(0o755)
    topics = leat_dir / "topics"
    topics.mkdir()
    topics.chmod(0o777)
    done = run_as(leat, NOBODY, "topic", "create", "t", "--durable", "os", "--data-dir", leat_dir / "new" / "deep",
                  directory=topics)
    one_line(done, 4, f"cannot make the directory {leat_dir}/new/deep", f"you may not write to {leat_dir} (ls -ld")


def test_data_directory_may_be_missing_where_it_is_not_needed(leat, tmp_path):
    """A broker names it to its clients, whether or not it has durable topics."""
    leat("pub", "t", "x", check=True)
    assert leat("--data-dir", tmp_path / "none", "sub", "t", "-o", "beginning", "-e", check=True).stdout == "x\n"
    leat("--data-dir", tmp_path / "none", "topic", "info", "t", check=True)
    one_line(leat("--data-dir", tmp_path / "none", "topic", "create", "u"), 3, "there is no directory", "--data-dir")


def test_doctor_says_if_the_data_directory_cannot_be_made(leat, tmp_path):
    (tmp_path / "file").touch()
    done = leat("--data-dir", tmp_path / "file" / "below", "doctor")
    assert f"{tmp_path}/file/below cannot be made" in done.stdout


# --- Errors ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("options, words", [
    (["x", "-p", "3"], ["--partition", "does not exist yet", "leat topic create t --partitions"]),
    (["x", "--sync"], ["--sync", "does not exist yet", "leat topic create t --durable os"]),
    (["-l", ""], ["--file", "one character or more"]),
], ids=lambda value: " ".join(value))
def test_error_leaves_no_new_topic(leat, options, words):
    one_line(leat("pub", "t", *options), 2, *words)
    assert leat("topic", "info", "t").returncode == 3


def test_limit_of_a_topic_with_timestamps_is_without_them(leat):
    leat("topic", "create", "t", "--capacity", "8KiB", "--timestamps", check=True)
    leat("pub", "t", "x" * 2_024, check=True)
    for arguments, text in (["x" * 2_025], None), ([], "x" * 2_025), (["--generate", "2025", "--count", "1"], None):
        one_line(leat("pub", "t", *arguments, input=text), 2, "2,025 bytes", "at most 2,024 bytes")
