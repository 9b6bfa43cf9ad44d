"""Durable topics on the command line: what was published comes back, whoever was killed, and every trouble
with the disk gets one line. If these failed, somebody who relied on `--durable` would lose records."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from test_store import one_line, set_version

LINES = [f"line {i}" for i in range(20_000)]


@pytest.fixture
def data(leat, tmp_path):
    """The data directory of the test's topics, on a real disk; its topics use LEAT_DIR of the test."""
    path = tmp_path / "data"
    leat.environment["LEAT_DATA_DIR"] = str(path)
    return path


def create(leat, name="orders", *options):
    leat("topic", "create", name, "--durable", "os", *options, check=True)


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
        "durability": "os", "directory": str(data / "orders"), "file_bytes": 1 << 20,
        "disk_bytes": facts["durable"]["disk_bytes"], "state": "ok", "reason": None,
        "keeper_pid": None, "recovered": {"cut_bytes": 0, "cut_records": 0, "damaged": 0}}
    one_line(leat("topic", "create", "orders"), 3, "exists already")
    one_line(leat("topic", "create", "orders", "--durable", "os"), 3, "exists already")


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


def test_another_directory_of_topics_is_refused_by_name(leat, leat_dir, data, tmp_path):
    create(leat)
    subscriber = leat.start("sub", "orders")
    wait_for(lambda: info(leat)["participants"])
    other = tmp_path / "other"
    other.mkdir()
    one_line(leat("pub", "orders", "x", "--dir", other), 3, f"in use with --dir {leat_dir}")
    os.killpg(subscriber.pid, signal.SIGKILL)
    subscriber.wait()
    # Its memory is still there, and may have what is not on disk.
    one_line(leat("pub", "orders", "x", "--dir", other), 3, f"in use with --dir {leat_dir}")
    publish(leat, ["x"])
    leat("pub", "orders", "y", "--dir", other, check=True)
    assert all_lines(leat) == ["x", "y"]


@pytest.mark.parametrize("arguments,words", [
    (["--durable", "fsync"], ["fsync", "not there yet"]),
    (["--durable", "interval:20ms"], ["not there yet"]),
    (["--durable", "yes"], ["'yes' is not a level"]),
    (["--file-size", "1MiB"], ["--file-size means nothing without --durable"]),
    (["--durable", "os", "--file-size", "1KiB"], ["from 64KiB to"]),
    (["--durable", "os", "--policy", "overwrite"], ["--policy overwrite and --durable"]),
    (["--durable", "os", "--policy", "grow"], ["--policy grow and --durable"]),
    (["--durable", "os", "--retain", "all"], ["--retain all and --durable"]),
    (["--durable", "os", "--evict-after", "1s"], ["--evict-after and --durable"]),
    (["--durable", "os", "--delete-when-unused"], ["--delete-when-unused and --durable"])])
def test_wrong_options_get_one_line(leat, data, arguments, words):
    one_line(leat("topic", "create", "orders", *arguments), 2, *words)
    assert not data.exists()


def test_groups_are_refused(leat, data):
    create(leat)
    one_line(leat("sub", "orders", "--group", "workers", "--exit"), 2, "groups of durable topics")


def test_full_disk_is_told_at_once_and_subscribers_go_on(leat, data, as_root):
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", data], check=True)
    try:
        create(leat, "orders", "--capacity", "64KiB", "--file-size", "256KiB")
        text = "\n".join("x" * 1000 for _ in range(10_000)) + "\n"
        done = leat("pub", "orders", input=text)
        assert done.returncode == 6 and done.stderr.count("\n") == 1
        assert f"the disk of {data}/orders is full" in done.stderr
        count = len(all_lines(leat))
        assert 2000 < count < 3200
        assert "the disk is full" in leat("topic", "info", "orders", check=True).stdout
        subprocess.run(["mount", "-o", "remount,size=20m", data], check=True)
        wait_for(lambda: leat("pub", "orders", "again").returncode == 0)
        assert all_lines(leat)[-1] == "again"
    finally:
        subprocess.run(["umount", "-l", data], check=True)


def test_read_only_disk_gets_one_line(leat, leat_dir, data, as_root):
    create(leat)
    publish(leat, LINES[:10])
    subprocess.run(["mount", "--bind", data, data], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", data], check=True)
        one_line(leat("pub", "orders", "x"), 4, f"ls -l {data}/orders")
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
