"""Commands for durable topics that have to refuse: each names the directory or file that is in the way, and why. If these
failed, somebody would look in the wrong place, or lose a topic by a deletion that was refused."""
import json
import os
import subprocess

import pytest

from test_cli import run_as
from test_durable import all_lines, create, data, group_files, info, publish, take, wait_for  # noqa: F401
from test_store import one_line

NOBODY = 65534


@pytest.fixture
def shared(leat_dir, data):
    """Both directories are for all users; so is the way to them."""
    data.mkdir()
    for path in data.parents:
        if str(path).startswith("/tmp/"):
            path.chmod(path.stat().st_mode | 0o055)
    for path in (leat_dir, data):
        path.chmod(0o777)
    return leat_dir


def mine(leat, shared, *arguments):
    return run_as(leat, NOBODY, *arguments, directory=shared)


def test_users_of_a_shared_directory_take_the_same_lock(leat, shared, data, as_root):
    leat("topic", "create", "x", check=True)
    leat("topic", "delete", "x", check=True)
    assert (shared / "+lock").stat().st_mode & 0o777 == 0o666
    assert mine(leat, shared, "topic", "create", "mine", "--durable", "os").returncode == 0
    assert mine(leat, shared, "pub", "mine", "a").returncode == 0
    assert not (shared / "mine").exists()
    assert mine(leat, shared, "sub", "mine", "--from", "beginning", "--exit").stdout == "a\n"
    assert mine(leat, shared, "topic", "delete", "mine").returncode == 0
    assert not (data / "mine").exists()


def test_a_lock_that_shuts_others_out_is_named_and_nothing_is_lost(leat, shared, data, as_root):
    lock = shared / "+lock"
    lock.touch()
    lock.chmod(0o644)
    assert mine(leat, shared, "topic", "create", "mine", "--durable", "os").returncode == 0
    assert mine(leat, shared, "pub", "mine", "a").returncode == 0
    for _ in range(2):
        one_line(mine(leat, shared, "topic", "delete", "mine"), 4, f"you may not write to {lock}",
                 "its owner or root can delete that file")
        assert mine(leat, shared, "sub", "mine", "--from", "beginning", "--exit").stdout == "a\n"
    lock.unlink()
    assert mine(leat, shared, "topic", "delete", "mine").returncode == 0
    assert list(data.iterdir()) == [] and [path.name for path in shared.iterdir()] == ["+lock"]


def test_groups_of_a_closed_topic_are_shown(leat, leat_dir, data):
    create(leat)
    publish(leat, ["a", "b", "c"])
    for group in ("workers", "audit"):
        leat("group", "create", "orders", group, "--from", "beginning", check=True)
    assert take(leat, "workers", 1) == ["a"]
    listed = [(group["name"], group["lag"], group["members"])
              for group in json.loads(leat("group", "list", "orders", "--json", check=True).stdout)]
    assert listed == [("audit", 3, 0), ("workers", 2, 0)]
    assert not (leat_dir / "orders").exists()
    shown = [(group["name"], group["lag"], group["members"]) for group in info(leat)["groups"]]
    assert shown == listed
    assert ("\ngroups    audit (lag 3, 0 members), workers (lag 2, 0 members)\n"
            in leat("topic", "info", "orders", check=True).stdout)
    [one] = json.loads(leat("topic", "list", "--json", check=True).stdout)
    assert [group["name"] for group in one["groups"]] == ["audit", "workers"]
    assert not (leat_dir / "orders").exists()


def test_a_read_only_file_system_is_told_by_all(leat, data, tmp_path, as_root):
    create(leat)
    publish(leat, ["a"])
    leat("backup", "orders", tmp_path / "backup", check=True)
    leat("topic", "create", "far", "--durable", "os", "--data-dir", tmp_path / "far", check=True)
    subprocess.run(["mount", "--bind", data, data], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", data], check=True)
        for command in (("topic", "create", "more", "--durable", "os"),
                        ("restore", tmp_path / "backup", "--name", "more")):
            one_line(leat(*command), 4, f"the file system of {data},", "is read-only", "--data-dir")
        one_line(leat("fsck", "orders", "--repair"), 4, f"the file system of {data}/orders is read-only")
        one_line(leat("backup", "far", data / "copy", "--data-dir", tmp_path / "far"), 4,
                 f"cannot make {data}/copy: its file system is read-only")
    finally:
        subprocess.run(["umount", data], check=True)


def test_a_data_directory_of_others_is_named(leat, shared, data, as_root):
    leat("topic", "create", "open", "--durable", "os", "--mode", "0666", check=True)
    holder = leat.start("sub", "open")
    wait_for(lambda: info(leat, "open")["participants"])
    data.chmod(0o700)
    one_line(mine(leat, shared, "topic", "create", "w", "--durable", "os"), 4,
             f"cannot use the directory {data} for durable topics' files: Permission denied")
    one_line(mine(leat, shared, "pub", "open", "x"), 4, f"no permission for the files of topic 'open' in {data}/open")
    data.chmod(0o755)
    one_line(mine(leat, shared, "topic", "create", "w", "--durable", "os"), 4,
             f"cannot use the directory {data} for durable topics' files: Permission denied")
    assert holder.poll() is None


def test_a_data_directory_that_is_a_file_is_named(leat, data, tmp_path):
    create(leat)
    leat("backup", "orders", tmp_path / "backup", check=True)
    for command in (("topic", "create", "w", "--durable", "os"), ("restore", tmp_path / "backup", "--name", "w"),
                    ("fsck", "orders"), ("dump", "orders")):
        one_line(leat(*command, "--data-dir", "/dev/null"), 2, "/dev/null is not a directory: --data-dir")


@pytest.mark.parametrize("is_open", [False, True])
def test_a_directory_in_the_way_of_a_deletion_is_named(leat, data, is_open):
    create(leat)
    publish(leat, ["a"])
    if is_open:
        leat.start("sub", "orders")
        wait_for(lambda: info(leat)["participants"])
    (data / "orders" / "notes").mkdir()
    one_line(leat("topic", "delete", "orders", "--force"), 5,
             f"topic 'orders' was not deleted: the directory {data}/orders/notes is in the way")
    assert all_lines(leat) == ["a"]
    os.rmdir(data / "orders" / "notes")
    leat("topic", "delete", "orders", "--force", check=True)
    assert list(data.iterdir()) == []


def test_a_group_that_cannot_be_read_is_a_group(leat, data):
    create(leat)
    leat("group", "create", "orders", "workers", check=True)
    for files in group_files(data).values():
        for file in files:
            file.write_bytes(b"nonsense")
    one_line(leat("group", "list", "orders"), 5, "what is saved of a group of topic 'orders' is damaged")
