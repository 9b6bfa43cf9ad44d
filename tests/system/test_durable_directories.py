"""A durable topic has two directories, that of its memory and that of its files: whoever cannot have one of them is
told which, and by whom. If these failed, somebody would wait for nothing, or free the wrong disk."""
import fcntl
import os
import signal
import subprocess

from test_durable import all_lines, create, data, info, publish, wait_for  # noqa: F401
from test_store import one_line


def test_a_deletion_says_who_is_in_the_way_when_nobody_has_it_open(leat, leat_dir, data):
    create(leat)
    with open(data / "orders" / "lock", "r+") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX, 1, 0)  # As somebody does who opens it.
        for force in ([], ["--force"]):
            refused = leat("rm", "orders", *force)
            one_line(refused, 3, "another process opens, closes or deletes topic 'orders'", "try again")
            assert "--force" not in refused.stderr
    leat("rm", "orders", check=True)


def test_no_room_for_the_memory_is_no_full_disk(leat, data, tmp_path, as_root):
    create(leat)
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
    try:
        one_line(leat("pub", "orders", "x", "--dir", small), 6, f"for its memory in {small}")
    finally:
        subprocess.run(["umount", small], check=True)
    publish(leat, ["x"])


def test_another_directory_of_topics_is_refused_by_name(leat, leat_dir, data, tmp_path):
    create(leat)
    subscriber = leat.start("sub", "orders")
    wait_for(lambda: info(leat)["participants"])
    other = tmp_path / "other"
    other.mkdir()
    one_line(leat("pub", "orders", "x", "--dir", other), 3, f"in use with --dir {leat_dir}")
    for force in ([], ["--force"]):
        refused = leat("rm", "orders", "--dir", other, *force)
        one_line(refused, 3, f"in use with --dir {leat_dir}")
        assert "--force" not in refused.stderr
    os.killpg(subscriber.pid, signal.SIGKILL)
    subscriber.wait()
    # Its memory is still there, and may have what is not on disk.
    one_line(leat("pub", "orders", "x", "--dir", other), 3, f"in use with --dir {leat_dir}")
    publish(leat, ["x"])
    leat("pub", "orders", "y", "--dir", other, check=True)
    assert all_lines(leat) == ["x", "y"]
