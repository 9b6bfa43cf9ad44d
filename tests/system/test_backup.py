"""`leat backup` and `leat restore`: what was backed up comes back with its offsets, whatever went on meanwhile.
If these failed, somebody would find out on the day that the backup is needed."""
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from conftest import directory_in_memory
from test_cli import NOBODY, run_as
from test_durable import (LINES, all_lines, create, data, failing_syncs, info, publish,  # noqa: F401
                          wait_for)
from test_store import flip, one_line, set_version

SMALL_FILES = ("--capacity", "64KiB", "--file-size", "64KiB")


@pytest.fixture
def backups(tmp_path):
    """A directory for backups, on the file system of the topics' files."""
    path = tmp_path / "backups"
    path.mkdir()
    return path


@pytest.fixture
def elsewhere():
    """A directory on another file system."""
    yield from directory_in_memory()


def content(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def segments(directory):
    return sorted(directory.glob("segment-*"))


def records(leat, name):
    """(partition, offset, value) of everything that can be read; fails if there is a gap."""
    done = leat("sub", name, "--from", "beginning", "--exit", "--json", check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert all("value" in one for one in found), done.stdout
    return [(one["partition"], one["offset"], one["value"]) for one in found]


def count_up(leat, name="orders"):
    """Publishes 0, 1, 2, … for as long as it is not killed: each record says its offset."""
    process = subprocess.Popen(f"seq 0 1000000000 | '{leat.executable}' pub {name}", shell=True,
                               env=leat.environment, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    leat.started.append(process)
    wait_for(lambda: info(leat, name)["partitions"][0]["end"] > 10_000)
    return process


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_what_was_backed_up_comes_back_with_its_offsets(leat, data, backups):
    create(leat)
    publish(leat, LINES)
    done = leat("backup", "orders", backups / "orders", check=True)
    assert done.stdout.startswith(f"backed up topic 'orders' to {backups}/orders: 1 file of ")
    assert done.stdout.endswith(", 20,000 offsets\n") and done.stderr == ""
    publish(leat, ["later"])
    leat("rm", "orders", check=True)  # The backup does not need the topic any more.
    done = leat("restore", backups / "orders", check=True)
    assert done.stdout.startswith(f"restored topic 'orders' from {backups}/orders: 1 file of ")
    assert done.stdout.endswith(f", 20,000 offsets\neverything is kept in {data}/orders\n")
    assert all_lines(leat) == LINES
    publish(leat, ["next"])
    assert records(leat, "orders")[-1] == (0, len(LINES), "next")
    leat("fsck", "orders", check=True)


def test_a_backup_of_a_topic_in_use_has_all_up_to_some_offset(leat, data, backups, elsewhere):
    """With files that are deleted, and used again, many times a second."""
    create(leat, "orders", *SMALL_FILES, "--retention-bytes", "256KiB")
    publisher = count_up(leat)
    targets = []
    for i in range(5):
        for target, options in ((backups / f"linked-{i}", []), (backups / f"copied-{i}", ["--copy"]),
                                (elsewhere / f"moved-{i}", [])):
            before = info(leat)["partitions"][0]["end"]
            done = leat("backup", "orders", target, *options, check=True)
            assert done.stderr == "" and ("linked" in done.stdout) == target.name.startswith("linked")
            targets.append((target, before))
    assert publisher.poll() is None
    kill(publisher)
    leat("pub", "orders", "last", check=True)
    leat("fsck", "orders", check=True)
    for target, before in targets:
        assert leat("fsck", target.name, "--data-dir", target.parent, check=True).stdout.endswith(": whole\n")
        leat("restore", target, check=True)
        found = records(leat, target.name)
        first = found[0][1]
        assert found == [(0, first + i, str(first + i)) for i in range(len(found))]
        assert found[-1][1] >= before - 1
        leat("pub", target.name, "next", check=True)
        assert records(leat, target.name)[-1] == (0, first + len(found), "next")


def test_full_files_are_linked_and_the_last_one_is_not(leat, data, backups, elsewhere):
    create(leat, "orders", *SMALL_FILES)
    for _ in range(3):  # Archivers come and go.
        publish(leat, LINES)
    names = [path.name for path in segments(data / "orders")]
    done = leat("backup", "orders", backups / "a", check=True)
    assert f"{len(names)} files of " in done.stdout and f"({len(names) - 1} linked, 1 copied)" in done.stdout
    links = [(backups / "a" / name).stat().st_nlink for name in names]
    assert links == [2] * (len(names) - 1) + [1]
    for target in (backups / "b", elsewhere / "c"):
        leat("backup", "orders", target, "--copy", check=True)
        assert all((target / name).stat().st_nlink == 1 for name in names)
        assert {name: content(target)[name] for name in names} == \
            {name: content(backups / "a")[name] for name in names}


def test_a_backup_is_never_written_to(leat, data, backups):
    create(leat, "orders", *SMALL_FILES, "--retention-bytes", "128KiB")
    publish(leat, LINES)
    leat("backup", "orders", backups / "orders", check=True)
    before = content(backups / "orders")
    publish(leat, LINES * 3)
    assert content(backups / "orders") == before
    leat("rm", "orders", check=True)
    leat("restore", backups / "orders", check=True)
    publish(leat, LINES * 3)
    leat("restore", backups / "orders", "--name", "more", check=True)
    publish(leat, LINES * 3, "more")
    assert content(backups / "orders") == before
    for name in ("orders", "more"):
        leat("fsck", name, check=True)


def test_a_restored_topic_is_another_one(leat, data, backups):
    create(leat)
    publish(leat, LINES[:10])
    before = info(leat, "orders")["id"]
    assert info(leat, "orders")["id"] == before
    leat("backup", "orders", backups / "orders", check=True)
    leat("restore", backups / "orders", "--name", "again", check=True)
    after = info(leat, "again")["id"]
    assert after not in (before, None)
    publish(leat, LINES[:1], "again")
    assert info(leat, "again")["id"] == after


def test_partitions_come_back(leat, data, backups):
    create(leat, "orders", *SMALL_FILES, "--partitions", "3", "--timestamps")
    for i in range(3):
        leat("pub", "orders", "--partition", str(i), input="\n".join(LINES[:2000 * i + 1]) + "\n", check=True)
    before = sorted(records(leat, "orders"))
    assert len(before) == 6003
    done = leat("backup", "orders", backups / "orders", check=True)
    assert ", 6,003 offsets\n" in done.stdout
    leat("restore", backups / "orders", "--name", "again", check=True)
    assert sorted(records(leat, "again")) == before
    assert info(leat, "again")["timestamps"]


def test_a_name_that_is_taken_is_not_replaced(leat, leat_dir, data, backups):
    create(leat)
    publish(leat, LINES[:10])
    leat("backup", "orders", backups / "orders", check=True)
    before = content(backups / "orders")
    one_line(leat("backup", "orders", backups / "orders"), 3, f"{backups}/orders exists already")
    (backups / "file").touch()
    one_line(leat("backup", "orders", backups / "file"), 3, "exists already")
    assert content(backups / "orders") == before
    one_line(leat("restore", backups / "orders"), 3, "topic 'orders' exists already", "--name")
    leat("restore", backups / "orders", "--name", "again", check=True)
    one_line(leat("restore", backups / "orders", "--name", "again"), 3, "topic 'again' exists already")
    leat("topic", "create", "memory", check=True)
    one_line(leat("restore", backups / "orders", "--name", "memory"), 3, "topic 'memory' exists already")
    assert sorted(path.name for path in data.iterdir()) == ["again", "orders"]


def test_what_was_published_before_is_in_the_backup(leat, data, backups):
    """The archiver collects for a moment before it writes. Another process publishes all the time."""
    create(leat, level="interval:1h")
    holder = leat.start("pub", "orders")
    for i in range(5):
        holder.stdin.write(f"{i}\n")
        holder.stdin.flush()
        wait_for(lambda: info(leat)["partitions"][0]["end"] == i + 1)
        leat("backup", "orders", backups / f"orders-{i}", check=True)
        dumped = leat("dump", f"orders-{i}", "--data-dir", backups, check=True).stdout
        assert dumped == "".join(f"0 {k} {k}\n" for k in range(i + 1))


def test_killed_backups_leave_the_topic_whole(leat, data, backups):
    create(leat, "orders", *SMALL_FILES, "--retention-bytes", "512KiB")
    publisher = count_up(leat)
    for i in range(20):
        process = leat.start("backup", "orders", backups / f"orders-{i}", *(["--copy"] if i % 2 else []))
        time.sleep(random.uniform(0, 0.02))
        kill(process)
    assert publisher.poll() is None
    kill(publisher)
    leat("pub", "orders", "last", check=True)
    assert leat("fsck", "orders", check=True).stdout.endswith(": whole\n")
    found = records(leat, "orders")
    first = found[0][1]
    assert found[:-1] == [(0, first + i, str(first + i)) for i in range(len(found) - 1)]
    for path in backups.glob("orders-*"):  # Whatever has its name is whole.
        leat("fsck", path.name, "--data-dir", backups, check=True)


def test_interrupted_commands_leave_nothing(leat, data, backups):
    create(leat, "orders", *SMALL_FILES)
    publish(leat, [line * 20 for line in LINES])
    begin = time.monotonic()
    leat("backup", "orders", backups / "orders", "--copy", check=True)
    seconds = time.monotonic() - begin
    interrupted = 0
    for i in range(20):
        for arguments, made in ((["backup", "orders", backups / "x", "--copy"], backups / "x"),
                                (["restore", backups / "orders", "--name", "x"], data / "x")):
            process = leat.start(*arguments)
            time.sleep(random.uniform(0, seconds))
            process.send_signal(signal.SIGINT)
            error = process.communicate(timeout=60)[1]
            if made.exists():
                assert process.returncode == 0
                shutil.rmtree(made)
            elif process.returncode == 130:
                assert error.startswith("leat: stopped by SIGINT; no") and error.count("\n") == 1
                interrupted += 1
            else:
                assert process.returncode == -signal.SIGINT and error == ""  # Nothing was begun.
    assert interrupted > 0
    assert [path.name for path in backups.iterdir()] == ["orders"]
    assert [path.name for path in data.iterdir()] == ["orders"]
    leat("fsck", "orders", check=True)


def test_a_topic_that_is_deleted_meanwhile_gets_one_line(leat, data, backups):
    for i in range(10):
        create(leat, "orders", *SMALL_FILES)
        publish(leat, LINES)
        process = leat.start("backup", "orders", backups / f"orders-{i}", "--copy")
        time.sleep(random.uniform(0, 0.02))
        leat("rm", "--force", "orders")
        error = process.communicate(timeout=60)[1]
        if process.returncode == 0:
            leat("fsck", f"orders-{i}", "--data-dir", backups, check=True)
            assert leat("dump", f"orders-{i}", "--data-dir", backups).stdout.count("\n") == len(LINES)
        else:
            assert error.count("\n") == 1 and "orders" in error, error
        leat("rm", "--force", "orders")  # If it was just being opened.
    assert not list(backups.glob("+new-*"))


def test_a_read_only_topic_is_backed_up_as_far_as_its_disk_has_it(leat, data, backups, failing_syncs):
    create(leat, level="fsync")
    leat("pub", "orders", "safe", check=True)
    holder = leat.start("sub", "orders")
    wait_for(lambda: info(leat)["participants"])
    failing_syncs.touch()
    assert leat("pub", "orders", "unknown").returncode == 1
    failing_syncs.unlink()
    done = leat("backup", "orders", backups / "orders", check=True)
    assert done.stderr == ("leat: warning: topic 'orders' is read-only (Input/output error): the backup has "
                           "what its disk has\n")
    leat("restore", backups / "orders", "--name", "again", check=True)
    assert all_lines(leat, "again")[0] == "safe"
    leat("pub", "again", "writable", check=True)
    kill(holder)


def test_a_full_disk_of_the_topic_gets_a_warning(leat, data, backups, as_root):
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", data], check=True)
    try:
        create(leat, "orders", "--capacity", "64KiB", "--file-size", "256KiB")
        assert leat("pub", "orders", input="\n".join("x" * 1000 for _ in range(5000)) + "\n").returncode == 6
        done = leat("backup", "orders", backups / "orders", check=True)
        assert done.stderr == ("leat: warning: the backup lacks what the disk did not take within 10 s "
                               "(No space left on device)\n")
    finally:
        subprocess.run(["umount", "-l", data], check=True)
    leat("restore", backups / "orders", "--name", "again", check=True)
    assert 2000 < len(all_lines(leat, "again")) < 3200


def test_damage_is_kept_and_named(leat, data, backups):
    create(leat, "orders", *SMALL_FILES)
    publish(leat, LINES)
    damaged = segments(data / "orders")[1]
    flip(damaged, 30_000)
    leat("backup", "orders", backups / "orders", check=True)
    done = leat("restore", backups / "orders", "--name", "again", check=True)
    assert done.stderr.startswith(f"leat: warning: damaged: {backups}/orders/{damaged.name}: no whole frame at ")
    assert done.stderr.count("\n") == 1
    once = leat("sub", "orders", "--from", "beginning", "--exit")
    again = leat("sub", "again", "--from", "beginning", "--exit")
    assert again.stdout == once.stdout and 15_000 < once.stdout.count("\n") < len(LINES)
    assert "damaged" in again.stderr
    assert leat("fsck", "again").returncode == 5


def test_damaged_backups_restore_what_is_whole(leat, data, backups):
    create(leat, "orders", *SMALL_FILES)
    publish(leat, LINES)
    leat("backup", "orders", backups / "orders", "--copy", check=True)
    whole = content(backups / "orders")
    for name in sorted(whole):
        path = backups / "orders" / name
        if name == "lock":
            path.unlink()
        else:
            flip(path, len(whole[name]) // 2)
        done = leat("restore", backups / "orders", "--name", "again", check=True)
        assert name == "lock" or f"warning: damaged: {path}: " in done.stderr
        found = set(leat("sub", "again", "--from", "beginning", "--exit", check=True).stdout.splitlines())
        assert found <= set(LINES) and len(found) > 15_000
        if not name.startswith("segment-"):
            assert len(found) == len(LINES)
        leat("pub", "again", "more", check=True)
        assert leat("fsck", "again").returncode == (5 if name.startswith("segment-") else 0)
        leat("rm", "again", check=True)
        path.write_bytes(whole[name])
    for checkpoint in (backups / "orders").glob("checkpoint-*"):
        checkpoint.unlink()
    done = leat("restore", backups / "orders", check=False)
    assert done.returncode == 3
    done = leat("restore", backups / "orders", "--name", "again", check=True)
    assert "neither copy can be read" in done.stderr
    assert all_lines(leat, "again") == LINES


def test_the_backup_below_a_directory_is_named(leat, data, backups):
    create(leat)
    leat("backup", "orders", backups / "orders", check=True)
    one_line(leat("restore", backups), 5, f"{backups} is not a backup: it has no manifest (is {backups}/orders meant?)")


def test_what_is_no_backup_gets_one_line(leat, data, backups, tmp_path):
    one_line(leat("restore", backups / "nowhere"), 3, f"there is no directory '{backups}/nowhere'")
    one_line(leat("restore", backups), 5, f"{backups} is not a backup: it has no manifest\n")
    one_line(leat("restore", __file__), 5, "is not a backup")
    one_line(leat("restore", ""), 3, "there is no directory")
    create(leat)
    publish(leat, LINES[:10])
    leat("backup", "orders", backups / "orders", check=True)
    one_line(leat("restore", backups / "orders", "--name", "a/b"), 2, "'a/b'")
    (backups / "orders").rename(backups / "a b")
    one_line(leat("restore", backups / "a b"), 2, "'a b'")
    (backups / "a b").rename(backups / "orders")
    for name in ("manifest-0", "checkpoint-1"):
        file = backups / "orders" / name
        whole = file.read_bytes()
        set_version(file, 2)
        one_line(leat("restore", backups / "orders", "--name", "again"), 5, "newer version of Leat")
        file.write_bytes(whole)
    for name in ("manifest-0", "manifest-1"):
        flip(backups / "orders" / name, 40)
    one_line(leat("restore", backups / "orders", "--name", "again"), 5, "both copies of the manifest")
    leat.start("sub", "orders")
    wait_for(lambda: info(leat)["participants"])
    one_line(leat("restore", data / "orders", "--name", "again"), 3, "a topic that is in use", "leat backup")
    assert [path.name for path in data.iterdir()] == ["orders"]


def test_what_cannot_be_backed_up_gets_one_line(leat, data, backups):
    one_line(leat("backup", "orders", backups / "x"), 3, "no topic 'orders'")
    leat("topic", "create", "memory", check=True)
    one_line(leat("backup", "memory", backups / "x"), 2, "topic 'memory' is not durable")
    create(leat)
    one_line(leat("backup", "a/b", backups / "x"), 2, "'a/b'")
    one_line(leat("backup", "orders", backups / "no" / "x"), 3, f"there is no directory {backups}/no")
    one_line(leat("backup", "orders", "/"), 2, "'/' is not the name")
    one_line(leat("backup", "orders", data / "orders" / "x"), 2, "has the files of topic 'orders' itself")
    one_line(leat("backup", "orders", "/proc/x"), 3, "/proc")
    one_line(leat("backup", "orders"), 2)
    assert list(backups.iterdir()) == []


def test_relative_names_and_slashes_at_the_end(leat, data, backups):
    create(leat)
    publish(leat, LINES[:10])
    leat.executable = leat.executable.resolve()
    done = subprocess.run([leat.executable, "backup", "orders", "here/"], env=leat.environment, cwd=backups,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and f"to {backups}/here: " in done.stdout
    done = subprocess.run([leat.executable, "restore", "."], env=leat.environment, cwd=backups / "here",
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and all_lines(leat, "here") == LINES[:10]


def test_a_full_disk_gets_one_line_and_leaves_nothing(leat, data, backups, as_root):
    create(leat, "orders", *SMALL_FILES)
    publish(leat, [line * 50 for line in LINES])
    leat("backup", "orders", backups / "orders", check=True)
    small = backups / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", small], check=True)
    try:
        one_line(leat("backup", "orders", small / "orders"), 6, f"no space for a backup of topic 'orders' in {small}")
        one_line(leat("restore", backups / "orders", "--data-dir", small), 6, f"no space for topic 'orders' in {small}")
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)
    leat("fsck", "orders", check=True)


def test_a_file_system_that_has_neither_links_nor_renames_without_replacing(leat, data, backups, tmp_path):
    """As NFS, or a FAT file system: what the library calls there fails."""
    source = tmp_path / "poor.c"
    source.write_text("""#include <errno.h>
int renameat2(int d, const char* from, int e, const char* to, unsigned flags) { errno = EINVAL; return -1; }
int linkat(int d, const char* from, int e, const char* to, int flags) { errno = EPERM; return -1; }
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "poor.so", source], check=True)
    create(leat, "orders", *SMALL_FILES)
    publish(leat, LINES)
    leat.environment["LD_PRELOAD"] = str(tmp_path / "poor.so")
    done = leat("backup", "orders", backups / "orders", check=True)
    assert "linked" not in done.stdout
    one_line(leat("backup", "orders", backups / "orders"), 3, "exists already")
    leat("restore", backups / "orders", "--name", "again", check=True)
    assert all_lines(leat, "again") == LINES


def test_mode_comes_back_and_strangers_are_refused(leat, leat_dir, data, backups, as_root):
    create(leat, "orders", *SMALL_FILES, "--mode", "0640")
    publish(leat, LINES)
    leat("backup", "orders", backups / "orders", check=True)
    leat("restore", backups / "orders", "--name", "again", check=True)
    for directory in (backups / "orders", data / "again"):
        assert directory.stat().st_mode & 0o777 == 0o750
        assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o640}
    for path in (*backups.parents, backups, data):
        if str(path).startswith("/tmp/"):
            path.chmod(0o755)
    leat_dir.chmod(0o777)
    one_line(run_as(leat, NOBODY, "restore", backups / "orders", "--name", "mine", directory=leat_dir), 4,
             f"cannot open {backups}/orders: Permission denied")
    one_line(leat("restore", backups / "orders", "--name", "x", "--data-dir", "/proc/x"), 3, "/proc")
    public = backups / "public"
    public.mkdir()
    public.chmod(0o777)
    one_line(run_as(leat, NOBODY, "backup", "orders", public / "x", directory=leat_dir), 4, "no permission")
    create(leat, "open", *SMALL_FILES, "--mode", "0666")
    publish(leat, LINES, "open")
    holder = leat.start("sub", "open")
    wait_for(lambda: info(leat, "open")["participants"])
    done = run_as(leat, NOBODY, "backup", "open", public / "x", directory=leat_dir)
    assert done.returncode == 0, done.stderr
    one_line(run_as(leat, NOBODY, "backup", "open", backups / "x", directory=leat_dir), 4, "no permission to make")
    leat("restore", public / "x", "--name", "open-again", check=True)
    assert all_lines(leat, "open-again") == LINES
    kill(holder)
