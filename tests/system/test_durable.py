"""Durable topics on the command line: what was published comes back, whoever was killed, and every trouble
with the disk gets one line. If these failed, somebody who relied on `--durable` would lose records."""
import json
import os
import resource
import shutil
import signal
import subprocess
import time

import pytest

from test_cli import wait_until
from test_store import one_line, set_version

LINES = [f"line {i}" for i in range(20_000)]


@pytest.fixture
def data(leat, tmp_path):
    """The data directory of the test's topics, on a real disk; its topics use LEAT_DIR of the test."""
    path = tmp_path / "data"
    leat.environment["LEAT_DATA_DIR"] = str(path)
    return path


def create(leat, name="orders", *options, level="os"):
    leat("topic", "create", name, "--durable", level, *options, check=True)


def info(leat, name="orders"):
    return json.loads(leat("topic", "info", name, "--json", check=True).stdout)


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


def all_lines(leat, name="orders"):
    return leat("sub", name, "--from", "beginning", "--exit", check=True).stdout.splitlines()


def publish(leat, lines, name="orders"):
    return leat("pub", name, input="\n".join(lines) + "\n", check=True)


def test_records_are_there_again_after_closing(leat, leat_dir, data):
    create(leat)
    publish(leat, LINES[:10])
    assert not (leat_dir / "orders").exists()
    publish(leat, LINES[10:20])
    assert all_lines(leat) == LINES[:20]
    assert len(list((data / "orders").glob("segment-*"))) == 1


@pytest.mark.parametrize("level,shown", [("os", "os"), ("interval:20ms", "interval 20ms"),
                                         ("fsync", "fsync")])
def test_every_level_keeps_everything(leat, leat_dir, data, level, shown):
    create(leat, level=level)
    publish(leat, LINES)
    leat("pub", "orders", "last", "--sync", check=True)
    assert all_lines(leat) == [*LINES, "last"]
    assert f"durable   {shown}: " in leat("topic", "info", "orders", check=True).stdout
    facts = info(leat)["durable"]
    assert facts["durability"] == level.partition(":")[0]
    assert facts["sync_interval_ns"] == (20_000_000 if level.startswith("interval") else None)


def test_what_fsync_has_acknowledged_needs_no_memory(leat, leat_dir, data):
    """Nobody closes the topic, and what a restart of the machine takes is gone."""
    create(leat, level="fsync")
    holder = leat.start("sub", "orders")
    wait_for(lambda: info(leat)["participants"])
    publish(leat, LINES)
    facts = info(leat)["partitions"][0]
    assert facts["durable"] == facts["end"] == len(LINES)
    os.killpg(holder.pid, signal.SIGKILL)
    holder.wait()
    shutil.rmtree(leat_dir)
    assert all_lines(leat) == LINES


def test_pub_waits_for_syncs_only_when_asked(leat, data):
    create(leat)
    holder = leat.start("sub", "orders")
    wait_for(lambda: info(leat)["participants"])
    publish(leat, LINES[:10])
    assert info(leat)["partitions"][0]["durable"] == 0
    leat("pub", "orders", "--sync", "x", check=True)
    assert info(leat)["partitions"][0]["durable"] == 11
    durable = leat("sub", "orders", "--from", "beginning", "--read", "durable", "--count", "11", check=True)
    assert durable.stdout.splitlines() == [*LINES[:10], "x"]
    os.killpg(holder.pid, signal.SIGKILL)
    holder.wait()


def test_lines_are_acknowledged_while_the_input_pauses(leat, data):
    create(leat, level="fsync")
    publisher = leat.start("pub", "orders")
    for count in range(1, 4):
        publisher.stdin.write("x\n")
        publisher.stdin.flush()
        wait_for(lambda: info(leat)["partitions"][0]["durable"] == count)
    publisher.stdin.close()
    assert publisher.wait(timeout=20) == 0


@pytest.mark.parametrize("arguments,words", [
    (["pub", "orders", "x", "--sync"], ["--sync: topic 'orders' is not durable"]),
    (["sub", "orders", "--read", "durable", "--exit"], ["--read durable: topic 'orders' is not durable"]),
    (["sub", "orders", "--read", "now"], ["'now' is neither committed nor durable"]),
    (["sub", "orders", "--read", "durable", "--group", "g"], ["--group", "--read"])])
def test_what_only_durable_topics_have_is_refused_elsewhere(leat, data, arguments, words):
    leat("topic", "create", "orders", check=True)
    one_line(leat(*arguments), 2, *words)


@pytest.fixture
def failing_syncs(leat, tmp_path):
    """A file; while it exists, fdatasync fails in every process."""
    source = tmp_path / "failing.c"
    source.write_text(f'''#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
int fdatasync(int file) {{
  if (access("{tmp_path}/fail", F_OK) != 0) return syscall(SYS_fdatasync, file);
  errno = EIO;
  return -1;
}}
''')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "failing.so", source], check=True)
    leat.environment["LD_PRELOAD"] = str(tmp_path / "failing.so")
    return tmp_path / "fail"


def test_a_failed_sync_makes_it_read_only_until_it_is_repaired(leat, data, failing_syncs):
    create(leat, level="fsync")
    publisher = leat.start("pub", "orders")
    publisher.stdin.write("safe\n")
    publisher.stdin.flush()
    wait_for(lambda: info(leat)["partitions"][0]["durable"] == 1)
    failing_syncs.touch()
    publisher.stdin.write("unknown\n")
    publisher.stdin.flush()
    assert publisher.wait(timeout=20) == 1
    assert "Input/output error" in publisher.stderr.read()
    one_line(leat("pub", "orders", "x"), 1, "read-only", "Input/output error", "fsck --repair orders")
    assert all_lines(leat) == ["safe"]
    facts = info(leat)["durable"]
    assert facts["state"] == "read_only" and facts["reason"] == "Input/output error"
    assert "; read-only: Input/output error" in leat("topic", "info", "orders", check=True).stdout
    one_line(leat("fsck", "orders", "--repair"), 1, "Input/output error")
    failing_syncs.unlink()
    one_line(leat("pub", "orders", "x"), 1, "read-only")  # Not by itself.
    done = leat("fsck", "orders", "--repair", check=True)
    assert "is writable again" in done.stderr and done.stdout.endswith("2 records: whole\n")
    publish(leat, ["after"])
    assert all_lines(leat) == ["safe", "unknown", "after"]


def test_a_process_without_descriptors_is_not_a_failed_write(leat, data):
    create(leat)
    publish(leat, ["one"])
    for files in range(8, 14):
        done = subprocess.run(["prlimit", f"--nofile={files}", leat.executable, "pub", "orders", "x"],
                              env=leat.environment, capture_output=True, text=True, timeout=60)
        assert "read-only" not in done.stderr and "is full" not in done.stderr, done.stderr
    assert info(leat)["durable"]["state"] == "ok"
    leat("pub", "orders", "two", check=True)


def test_repair_goes_on_while_others_use_the_topic(leat, data, failing_syncs):
    create(leat, level="interval:5ms")
    subscriber = leat.start("sub", "orders", "--from", "beginning")
    wait_for(lambda: info(leat)["participants"])
    publish(leat, ["one"])
    wait_for(lambda: info(leat)["partitions"][0]["durable"] == 1)
    failing_syncs.touch()
    publish(leat, ["two"])
    wait_for(lambda: info(leat)["durable"]["state"] == "read_only")
    failing_syncs.unlink()
    done = leat("fsck", "orders", "--repair", check=True)
    assert "is writable again" in done.stderr
    publish(leat, ["three"])
    assert [subscriber.stdout.readline() for _ in range(3)] == ["one\n", "two\n", "three\n"]
    os.killpg(subscriber.pid, signal.SIGKILL)
    subscriber.wait()


def test_everything_on_disk_survives_a_kill_and_the_loss_of_the_memory(leat, leat_dir, data):
    """What a crash of all processes and then a restart of the machine do."""
    create(leat)
    subscriber = leat.start("sub", "orders")
    publisher = leat.start("pub", "orders")
    publisher.stdin.write("\n".join(LINES) + "\n")
    publisher.stdin.flush()
    wait_for(lambda: info(leat)["partitions"][0]["written"] == len(LINES))
    for process in (publisher, subscriber):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    shutil.rmtree(leat_dir)
    done = leat("sub", "orders", "--from", "beginning", "--exit", check=True)
    assert done.stdout.splitlines() == LINES
    publish(leat, ["after"])
    assert all_lines(leat) == [*LINES, "after"]
    leat("fsck", "orders", check=True)


def test_what_was_not_on_disk_yet_is_written_by_who_comes_next(leat, data):
    create(leat)
    publisher = leat.start("pub", "orders")
    publisher.stdin.write("\n".join(LINES) + "\n")
    publisher.stdin.flush()
    wait_for(lambda: info(leat)["partitions"][0]["end"] == len(LINES))
    os.killpg(publisher.pid, signal.SIGKILL)
    publisher.wait()
    assert all_lines(leat) == LINES


def test_create_says_where_everything_is_kept(leat, data):
    done = leat("topic", "create", "orders", "--durable", "os", "--file-size", "1MiB", check=True)
    assert done.stdout == ("created topic 'orders': 32 MiB, records up to 2,097,136 bytes\n"
                           f"everything is kept in {data}/orders\n")
    facts = info(leat)
    assert facts["durable"] == {
        "durability": "os", "sync_interval_ns": None, "directory": str(data / "orders"), "file_bytes": 1 << 20,
        "retention_bytes": None, "retention_ms": None,
        "disk_bytes": facts["durable"]["disk_bytes"], "state": "ok", "reason": None,
        "archiver_pid": None, "recovered": {"cut_bytes": 0, "cut_records": 0, "damaged": 0}}
    one_line(leat("topic", "create", "orders"), 3, "exists already")
    one_line(leat("topic", "create", "orders", "--durable", "os"), 3, "exists already")


def test_numbers_that_a_failure_skipped_are_not_called_deleted(leat):
    leat("topic", "create", "orders", "--durable", "os", "--capacity", "64KiB", check=True)
    # The machine fails while a process has the topic open.
    subscriber = leat.start("sub", "orders")
    wait_until((leat.directory / "orders").exists)
    subscriber.kill()
    subscriber.wait()
    shutil.rmtree(leat.directory / "orders")
    leat("pub", "orders", "y", check=True)
    done = leat("sub", "orders", "--from", "beginning", "--exit", check=True)
    assert done.stdout == "y\n"
    assert done.stderr == ("leat: topic 'orders' begins at offset 16,777,216: there are no older records, because "
                           "numbering went on there after a failure\n")


def test_retention_is_told_and_done(leat, data):
    done = leat("topic", "create", "orders", "--durable", "os", "--capacity", "64KiB", "--file-size", "64KiB",
                "--retention-bytes", "256KiB", "--retention-time", "24h", check=True)
    assert done.stdout.endswith("\nwhat fits in 256 KiB a partition and what is not older than 24h is kept in "
                                f"{data}/orders\n")
    leat("pub", "orders", "--generate", "100", "--count", "20000", check=True)
    facts = info(leat)
    assert facts["durable"]["retention_bytes"] == 256 << 10
    assert facts["durable"]["retention_ms"] == 24 * 3600 * 1000
    assert facts["durable"]["disk_bytes"] <= (256 + 128) << 10
    start = facts["partitions"][0]["start"]
    assert 15_000 < start < 20_000
    assert "kept is what fits in 256 KiB" in leat("topic", "info", "orders", check=True).stdout
    done = leat("sub", "orders", "--from", "beginning", "--exit", check=True)
    assert len(done.stdout.splitlines()) == 20_000 - start
    assert f"begins at offset {start:,}: older records were deleted" in done.stderr
    done = leat("sub", "orders", "--from", "17", "--exit", check=True)
    assert f"gap of {start - 17} records at offset 17 (partition 0): overwritten; next" in done.stderr
    assert leat("fsck", "orders", check=True).stdout.endswith(": whole\n")


def test_data_in_memory_gets_a_note(leat, leat_dir):
    done = leat("topic", "create", "orders", "--durable", "os", "--data-dir", leat_dir / "data", check=True)
    assert done.stderr.startswith("leat: note: ") and "a restart of the machine takes it" in done.stderr


def test_closed_topics_are_listed_and_described_without_being_opened(leat, leat_dir, data):
    create(leat, "orders", "--partitions", "2", "--timestamps")
    publish(leat, LINES[:100])
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (data / "orders").iterdir())
    facts = info(leat)
    assert sum(one["end"] for one in facts["partitions"]) == 100
    assert all(one["written"] == one["durable"] == one["end"] for one in facts["partitions"])
    assert facts["participants"] == [] and facts["timestamps"]
    assert "orders" in leat("ls", check=True).stdout
    text = leat("topic", "info", "orders", check=True).stdout
    assert f"in {data}/orders\n" in text
    assert before == sorted((path.name, path.stat().st_mtime_ns) for path in (data / "orders").iterdir())
    assert not (leat_dir / "orders").exists()


def test_delete_takes_the_files(leat, leat_dir, data):
    create(leat)
    publish(leat, LINES[:10])
    leat("rm", "orders", check=True)
    assert list(data.iterdir()) == []
    one_line(leat("rm", "orders"), 3, "no topic 'orders'")
    create(leat)
    assert all_lines(leat) == []
    subscriber = leat.start("sub", "orders")
    wait_for(lambda: info(leat)["participants"])
    one_line(leat("rm", "orders"), 3, "in use")
    leat("rm", "--force", "orders", check=True)
    subscriber.wait(timeout=20)
    assert list(data.iterdir()) == [] and not (leat_dir / "orders").exists()


@pytest.mark.parametrize("arguments,words", [
    (["--durable", "interval"], ["'interval' does not say how often", "interval:20ms"]),
    (["--durable", "interval:"], ["'interval:' does not say how often"]),
    (["--durable", "interval:10us"], ["'interval:10us' does not say", "1ms to 1h"]),
    (["--durable", "interval:2h"], ["'interval:2h' does not say", "1ms to 1h"]),
    (["--durable", "yes"], ["'yes' is not a level"]),
    (["--file-size", "1MiB"], ["--file-size means nothing without --durable"]),
    (["--retention-bytes", "1MiB"], ["--retention-bytes and --retention-time mean nothing without --durable"]),
    (["--retention-time", "1h"], ["mean nothing without --durable"]),
    (["--durable", "os", "--retention-time", "soon"], ["--retention-time"]),
    (["--durable", "os", "--file-size", "1KiB"], ["from 64KiB to"]),
    (["--durable", "os", "--policy", "overwrite"], ["--policy overwrite and --durable"]),
    (["--durable", "os", "--policy", "grow"], ["--policy grow and --durable"]),
    (["--durable", "os", "--retain", "all"], ["--retain all and --durable"]),
    (["--durable", "os", "--evict-after", "1s"], ["--evict-after and --durable"]),
    (["--durable", "os", "--delete-when-unused"], ["--delete-when-unused and --durable"])])
def test_wrong_options_get_one_line(leat, data, arguments, words):
    one_line(leat("topic", "create", "orders", *arguments), 2, *words)
    assert not data.exists()


def member(leat, *options, name="workers"):
    return leat("sub", "orders", "--group", name, *options, check=True).stdout.splitlines()


def test_groups_go_on_after_everybody_was_killed_and_the_memory_is_gone(leat, leat_dir, data):
    create(leat)
    publish(leat, LINES[:1000])
    leat("group", "create", "orders", "workers", "--from", "beginning", check=True)
    assert member(leat, "--count", "300") == LINES[:300]
    holder = leat.start("sub", "orders", "--group", "workers")
    wait_for(lambda: json.loads(leat("group", "info", "orders", "workers", "--json").stdout)["lag"] == 0)
    time.sleep(2.5)  # Saved every second.
    os.killpg(holder.pid, signal.SIGKILL)
    holder.wait()
    shutil.rmtree(leat_dir)
    assert "workers" in leat("group", "list", "orders", check=True).stdout
    publish(leat, LINES[1000:1500])
    assert member(leat, "--exit") == LINES[1000:1500]
    leat("group", "delete", "orders", "workers", check=True)
    assert not list((data / "orders").glob("group-*"))


def test_groups_and_subscribers_behind_what_was_deleted(leat, data):
    leat("topic", "create", "orders", "--durable", "os", "--capacity", "64KiB", "--file-size", "64KiB",
         "--retention-bytes", "64KiB", check=True)
    for name, what in ("first", "start"), ("last", "end"), ("none", "stop"):
        leat("group", "create", "orders", name, "--from", "beginning", "--on-expired", what, check=True)
    leat("pub", "orders", "--generate", "100", "--count", "5000", check=True)
    start = info(leat)["partitions"][0]["start"]
    gap = f"leat: gap of {start} records at offset 0 (partition 0): overwritten; next is offset {start}\n"
    done = leat("sub", "orders", "--group", "first", "--exit", check=True)
    assert done.stderr == gap and len(done.stdout.splitlines()) == 5000 - start
    done = leat("sub", "orders", "--group", "last", "--exit", check=True)
    assert done.stdout == "" and "next is offset 5000" in done.stderr
    assert "goes on at the end" in leat("group", "info", "orders", "last", check=True).stdout
    one_line(leat("sub", "orders", "--group", "none", "--exit"), 1, "leat group seek orders none beginning")
    leat("group", "seek", "orders", "none", "beginning", check=True)
    assert len(member(leat, "--exit", name="none")) == 5000 - start
    assert leat("sub", "orders", "--from", "0", "--exit", check=True).stderr == gap


def test_on_expired_is_for_durable_topics(leat, data):
    create(leat)
    one_line(leat("group", "create", "orders", "a", "--on-expired", "never"), 2, "start, end and stop")
    leat("topic", "create", "memory", check=True)
    one_line(leat("group", "create", "memory", "a", "--on-expired", "end"), 2, "is not durable")


def test_dead_letters_are_as_durable(leat, leat_dir, data):
    create(leat)
    publish(leat, ["bad"])
    leat("group", "create", "orders", "workers", "--from", "beginning", "--max-deliveries", "1", check=True)
    with open("/dev/full", "w") as full:
        subprocess.run([leat.executable, "sub", "orders", "--group", "workers"], env=leat.environment,
                       stdout=full, stderr=subprocess.DEVNULL, timeout=60)
    member(leat, "--exit")
    shutil.rmtree(leat_dir)
    assert all_lines(leat, "orders.workers.dead") == ["bad"]


def group_files(data):
    """The files of each group of the topic: the first one, and the archiver's two copies."""
    groups = {}
    for file in sorted((data / "orders").glob("group-*")):
        groups.setdefault(file.name.split("-")[1], []).append(file)
    return groups


def take(leat, group, count, *options):
    return leat("sub", "orders", "--group", group, "--count", count, *options, check=True).stdout.splitlines()


def test_groups_go_on_where_they_were(leat, leat_dir, data):
    create(leat)
    publish(leat, LINES[:30])
    for group, options in (("least", ()), ("most", ("--at-most-once",))):
        leat("group", "create", "orders", group, "--from", "beginning", *options, check=True)
        assert take(leat, group, 10) == LINES[:10]
        assert not (leat_dir / "orders").exists()
        assert take(leat, group, 5) == LINES[10:15]
    assert "least" in leat("group", "list", "orders", check=True).stdout
    leat("fsck", "orders", check=True)


def test_damaged_files_of_groups_are_told_and_repaired(leat, data):
    create(leat)
    publish(leat, LINES[:30])
    for group in ("lost", "workers"):
        leat("group", "create", "orders", group, "--from", "beginning", check=True)
        assert take(leat, group, 10) == LINES[:10]
    lost, workers = [files for files in sorted(group_files(data).values(),
                                               key=lambda files: b"workers" in files[0].read_bytes())]
    assert len(lost) == len(workers) == 3
    # One copy of two: nobody notices, but fsck does.
    workers[2].write_bytes(b"nonsense")
    done = leat("fsck", "orders")
    assert done.returncode == 5
    assert f"{workers[2].name}: it is damaged; another file has the group 'workers'" in done.stdout
    done = leat("fsck", "orders", "--repair", check=True)
    assert done.stderr == ""
    assert take(leat, "workers", 5) == LINES[10:15]
    # Both: the group is not begun anew, and others can still be used.
    for file in lost[1:]:
        file.write_bytes(b"nonsense")
    words = ["what is saved of", "damaged", "`leat fsck orders`", "`leat fsck --repair orders`"]
    listed = leat("group", "list", "orders")
    assert listed.returncode == 5 and "workers" in listed.stdout
    assert all(word in listed.stderr for word in words)
    one_line(leat("sub", "orders", "--group", "lost", "--exit"), 5, *words)
    assert take(leat, "workers", 5) == LINES[15:20]
    done = leat("fsck", "orders")
    assert done.returncode == 5
    assert f"{lost[1].name}: it is damaged, and no other file has that group" in done.stdout
    done = leat("fsck", "orders", "--repair", check=True)
    assert done.stderr.count("\n") == 1 and lost[0].name in done.stderr
    assert len(group_files(data)) == 1
    leat("fsck", "orders", check=True)
    assert take(leat, "workers", 5) == LINES[20:25]
    leat("group", "create", "orders", "lost", "--from", "10", check=True)
    assert take(leat, "lost", 1) == LINES[10:11]


@pytest.fixture(params=["tmpfs", "ext4"])
def small_disk(request, data, as_root, tmp_path):
    """The data directory is a file system of its own with about 3 MB free, and more without its ballast."""
    data.mkdir()
    if request.param == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", data], check=True)
    else:
        image = tmp_path / "image"
        with open(image, "wb") as file:
            file.truncate(8 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        mounted = subprocess.run(["mount", "-o", "loop", image, data], capture_output=True, text=True)
        if mounted.returncode != 0:
            pytest.skip(f"this machine mounts no file as a disk: {mounted.stderr.strip()}")
    ballast = data / "+ballast"
    free = os.statvfs(data)
    ballast.write_bytes(b"x" * (free.f_bavail * free.f_frsize - (3 << 20)))
    yield ballast
    subprocess.run(["umount", "-l", data], check=True)


def fill(path):
    """Takes the last byte of a disk."""
    with open(path, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 512):
                pass
        except OSError:
            return


def test_a_limit_of_the_archiver_is_not_called_a_full_disk(leat, data):
    create(leat, "orders", "--capacity", "64KiB", "--file-size", "1MiB")
    small = 512 << 10  # Less than a file of the topic.
    # SIGXFSZ stays ignored.
    limited = {"restore_signals": False,
               "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (small, small))}

    def looks(*arguments):
        """With the same limit, because whoever looks may become the archiver."""
        process = leat.start(*arguments, **limited)
        return process.communicate(timeout=60)[0]

    publisher = leat.start("pub", "orders", **limited)
    publisher.stdin.write("first\n")
    publisher.stdin.flush()
    wait_for(lambda: json.loads(looks("topic", "info", "orders", "--json"))["durable"]["reason"] == "File too large")
    shown = looks("topic", "info", "orders")
    assert "the archiver cannot write (File too large), publishers wait or fail" in shown
    assert f"orders ({data}/orders: File too large)" in looks("doctor")
    lines = "".join("x" * 1000 + "\n" for _ in range(1000))
    _, errors = publisher.communicate(lines, timeout=60)
    assert publisher.returncode == 6 and errors.count("\n") == 1
    assert f"topic 'orders': its archiver cannot write to {data}/orders (File too large): raise its `ulimit -f`" in errors
    # By a process without that limit, as soon as it has written what is in memory.
    wait_for(lambda: leat("pub", "orders", "again").returncode == 0)
    assert all_lines(leat)[0] == "first" and all_lines(leat)[-1] == "again"


def test_full_disk_is_told_at_once_and_everything_goes_on(leat, data, small_disk):
    create(leat, "orders", "--capacity", "64KiB", "--file-size", "256KiB")
    leat("group", "create", "orders", "workers", "--from", "beginning", check=True)
    text = "\n".join("x" * 1000 for _ in range(10_000)) + "\n"
    done = leat("pub", "orders", input=text)
    assert done.returncode == 6 and done.stderr.count("\n") == 1
    assert f"the file system of {data}/orders is full" in done.stderr
    assert f"the file system of {data}/orders is full" in leat("topic", "info", "orders", check=True).stdout
    count = len(all_lines(leat))
    assert 2000 < count < 3200
    fill(data / "+rest")
    holder = leat.start("sub", "orders", "--group", "workers", "--count", str(count))
    assert len(holder.stdout.read().splitlines()) == count  # Although it cannot be saved.
    one_line(leat("group", "create", "orders", "more"), 6)
    small_disk.unlink()
    wait_for(lambda: leat("pub", "orders", "again").returncode == 0)
    assert all_lines(leat)[-1] == "again"
    assert member(leat, "--exit") == ["again"]
    leat("fsck", "orders", check=True)


def test_read_only_disk_gets_one_line(leat, leat_dir, data, as_root):
    create(leat)
    publish(leat, LINES[:10])
    subprocess.run(["mount", "--bind", data, data], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", data], check=True)
        for command in (("pub", "orders", "x"), ("sub", "orders", "--exit")):
            one_line(leat(*command), 4,
                     f"topic 'orders' cannot be used: the file system of {data}/orders is read-only; mount it writable")
        one_line(leat("topic", "create", "more", "--durable", "os"), 4)
        assert info(leat)["partitions"][0]["end"] == 10
    finally:
        subprocess.run(["umount", data], check=True)
    assert all_lines(leat) == LINES[:10]


def test_newer_version_and_half_deleted_files_get_one_line(leat, data):
    create(leat)
    publish(leat, LINES[:10])
    topic = data / "orders"
    whole = {path: path.read_bytes() for path in topic.iterdir()}
    for name in ("manifest-0", "checkpoint-1"):
        set_version(topic / name, 2)
        one_line(leat("pub", "orders", "x"), 5, "`leat fsck orders` says why")
        (topic / name).write_bytes(whole[topic / name])
    for name in ("manifest-0", "manifest-1"):
        (topic / name).unlink()
    one_line(leat("pub", "orders", "x"), 5, "`leat fsck orders` says why")
    for path, content in whole.items():
        path.write_bytes(content)
    (topic / "lock").unlink()
    one_line(leat("pub", "orders", "x"), 5, "`leat fsck orders` says why")
    leat("fsck", "orders", "--repair", check=True)
    assert all_lines(leat) == LINES[:10]


def test_files_that_are_gone_get_one_line(leat, leat_dir, data):
    create(leat)
    publish(leat, LINES[:10])
    with subprocess.Popen([leat.executable, "sub", "orders"], env=leat.environment) as subscriber:
        while not (leat_dir / "orders").exists():
            time.sleep(0.01)
        subscriber.kill()
    (data / "orders").rename(data / "away")
    one_line(leat("pub", "orders", "x"), 5, ": bring that directory back, or name the directory that has them here with --data-dir")
    (data / "away").rename(data / "orders")
    assert all_lines(leat) == LINES[:10]


def test_another_users_topic_gets_one_line(leat, leat_dir, data, as_root):
    create(leat)
    publish(leat, LINES[:10])
    for path in (*data.parents, data):
        if str(path).startswith("/tmp/"):
            path.chmod(0o755)
    leat_dir.chmod(0o777)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                           leat.executable, "pub", "orders", "x"], env=leat.environment,
                          capture_output=True, text=True, timeout=60)
    one_line(done, 4, "no permission for topic 'orders' or its files")
