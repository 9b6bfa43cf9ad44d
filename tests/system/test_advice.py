"""One errno has several causes, and what is right for one of them is wrong for the others. If these tests failed, a
message would send a user to enlarge a file system that has room, or to look at rights that are right."""
import json
import os
import resource
import subprocess
from contextlib import contextmanager

import pytest

from test_cli import NOBODY, run_as
from test_durable import all_lines, create, data, info, publish, wait_for  # noqa: F401
from test_store import one_line


@contextmanager
def mounted(path, *options):
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", *options, path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


def with_few_inodes(path, number):
    return mounted(path, "-t", "tmpfs", "-o", f"size=64m,nr_inodes={number}", "none")


def test_without_inodes_bytes_are_not_asked_for(leat, tmp_path, as_root):
    with with_few_inodes(tmp_path / "few", 3) as few:
        for command in (("topic", "create", "t", "--capacity", "64KiB"), ("pub", "t", "x")):
            done = leat(*command, "--dir", few)
            one_line(done, 6, "'t'", f"the file system of {few} has 2 free inodes", f"nr_inodes=1030 {few}`")
            assert "size=" not in done.stderr
        shown = leat("doctor", "--dir", few).stdout
        assert "-> it has 2 free inodes" in shown and "size=" not in shown.split("memory")[0]


def test_without_inodes_the_data_directory_is_named(leat, data, tmp_path, as_root):
    with with_few_inodes(data, 3):
        one_line(leat("topic", "create", "t", "--durable", "os"), 6, f"the file system of {data} has ", "free inodes")
        assert f"data directory {data}" in leat("doctor").stdout and "free inodes" in leat("doctor").stdout
    with with_few_inodes(data, 20):
        create(leat, "orders", "--capacity", "64KiB", "--file-size", "64KiB")
        done = leat("pub", "orders", input="".join("x" * 1000 + "\n" for _ in range(4000)))
        one_line(done, 6, f"the file system of {data}/orders has 0 free inodes", "publishing goes on")
        subprocess.run(["mount", "-o", "remount,nr_inodes=1000", data], check=True)
        wait_for(lambda: leat("pub", "orders", "again").returncode == 0)  # Once its archiver has tried again.
        assert all_lines(leat)[-1] == "again"


def test_without_inodes_no_directory_can_be_made(leat, tmp_path, as_root):
    with with_few_inodes(tmp_path / "few", 1) as few:
        one_line(leat("topic", "create", "t", "--dir", few / "new"), 6, f"{few}/new", "no inodes are free")
        done = leat("topic", "create", "t", "--durable", "os", "--data-dir", few / "new" / "deep")
        one_line(done, 6, f"no space for the directory {few}/new/deep", f"the file system of {few} has 0 free inodes",
                 f"nr_inodes=1026 {few}`")
        assert "size=" not in done.stderr


def test_a_limit_of_file_sizes_stops_copies(leat, data, tmp_path):
    create(leat, "orders", "--capacity", "64KiB", "--file-size", "64KiB")
    publish(leat, ["x" * 1000] * 50)
    leat("backup", "orders", tmp_path / "kept", check=True)
    for command in (("backup", "orders", tmp_path / "other", "--copy"), ("restore", tmp_path / "kept", "--name", "more")):
        limited = leat.start(*map(str, command), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10240, 10240)))
        _, errors = limited.communicate(timeout=60)
        assert limited.returncode == 6 and errors.count("\n") == 1 and "`ulimit -f`" in errors, errors
        assert "mount" not in errors and "free" not in errors


@pytest.mark.parametrize("command", [("topic", "create", "t"), ("topic", "create", "t", "--durable", "os"), ("pub", "t", "x")],
                         ids=" ".join)
def test_a_limit_of_file_sizes_is_named(leat, data, command):
    limited = leat.start(*command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10240, 10240)))
    _, errors = limited.communicate(timeout=60)
    assert limited.returncode == 6 and errors.count("\n") == 1 and "`ulimit -f`" in errors, errors
    assert "mount" not in errors


def without_proc(leat, *arguments):
    """Runs the executable where a chroot or a jail has no /proc."""
    script = 'mount -t tmpfs none /proc; exec "$0" "$@"'
    return subprocess.run(["unshare", "-m", "sh", "-c", script, leat.executable, *arguments], env=leat.environment,
                          capture_output=True, text=True, timeout=60)


def test_topics_in_memory_do_not_need_proc(leat, as_root):
    for command in (["topic", "create", "t"], ["pub", "t", "x"], ["group", "create", "t", "g"], ["topic", "info", "t"],
                    ["topic", "list"], ["topic", "delete", "t"]):
        done = without_proc(leat, *command)
        assert done.returncode == 0 and done.stderr == "", done
    assert not (leat.directory / "t").exists()
    assert "memory         unknown, because /proc is not mounted" in without_proc(leat, "doctor").stdout


def test_durable_topics_name_proc(leat, data, tmp_path, as_root):
    create(leat)
    publish(leat, ["a"])
    leat("group", "create", "orders", "workers", check=True)
    for command in (["pub", "orders", "b"], ["topic", "create", "t", "--durable", "os"], ["backup", "orders", "/tmp/x"]):
        one_line(without_proc(leat, *command), 1, "this needs /proc, which is not mounted here")
    assert not (data / "t").exists()
    shown = without_proc(leat, "topic", "info", "orders").stdout
    assert f"in {data}/orders" in shown and "workers" in shown
    subscriber = leat.start("sub", "orders", "--from", "beginning")
    assert subscriber.stdout.readline() == "a\n"
    assert without_proc(leat, "pub", "orders", "b").returncode == 0  # It is open.
    assert subscriber.stdout.readline() == "b\n"
    subscriber.terminate()
    subscriber.wait()
    assert without_proc(leat, "topic", "delete", "orders").returncode == 0
    assert list(data.iterdir()) == []


def test_deletions_that_need_proc_name_it(leat, leat_dir, data, tmp_path, as_root):
    create(leat)
    subscriber = leat.start("sub", "orders")
    wait_for(lambda: info(leat)["participants"])
    other = tmp_path / "other"
    other.mkdir()
    one_line(without_proc(leat, "rm", "orders", "--dir", other), 1, "this needs /proc, which is not mounted here")
    subscriber.terminate()
    subscriber.wait()
    os.chown(leat_dir, 12345, -1)
    leat_dir.chmod(0o1777)
    run_as(leat, NOBODY, "topic", "create", "t", directory=leat_dir).check_returncode()
    one_line(without_proc(leat, "rm", "t"), 1, "this needs /proc, which is not mounted here")
    leat("rm", "t", check=True)


def test_a_backup_is_restored_without_proc(leat, data, tmp_path, as_root):
    create(leat)
    publish(leat, ["a"])
    leat("backup", "orders", tmp_path / "orders", check=True)
    leat("topic", "delete", "orders", check=True)
    assert without_proc(leat, "restore", tmp_path / "orders").returncode == 0
    assert all_lines(leat) == ["a"]


def test_a_read_only_directory_is_not_a_lack_of_rights(leat, leat_dir, as_root):
    leat("topic", "create", "t", check=True)
    with mounted(leat_dir, "--bind", leat_dir):
        subprocess.run(["mount", "-o", "remount,ro,bind", leat_dir], check=True)
        for command in (("pub", "t", "x"), ("topic", "create", "u"), ("topic", "delete", "t")):
            done = leat(*command)
            one_line(done, 4, f"the file system of {leat_dir} is read-only")
            assert "mode" not in done.stderr


def test_a_read_only_directory_of_memory_is_not_that_of_the_files(leat, leat_dir, data, as_root):
    create(leat)
    publish(leat, ["a"])
    with mounted(leat_dir, "--bind", leat_dir):
        subprocess.run(["mount", "-o", "remount,ro,bind", leat_dir], check=True)
        one_line(leat("pub", "orders", "b"), 4, f"the file system of {leat_dir} is read-only")


def test_a_file_that_something_is_mounted_on_is_not_a_lack_of_rights(leat, leat_dir, as_root):
    leat("topic", "create", "t", check=True)
    control = leat_dir / "t" / "control"
    subprocess.run(["mount", "--bind", control, control], check=True)
    try:
        done = leat("topic", "delete", "t")
        one_line(done, 4, "or something is mounted there")
        assert "owner" not in done.stderr
    finally:
        subprocess.run(["umount", control], check=True)
    leat("topic", "delete", "t", check=True)


@pytest.mark.parametrize("command", [("group", "create", "t", "g"), ("sub", "t", "--group", "g", "--exit")], ids=" ".join)
def test_a_group_that_the_topics_owner_could_not_use_is_refused(leat, leat_dir, as_root, command):
    leat_dir.chmod(0o777)
    run_as(leat, NOBODY, "topic", "create", "t", directory=leat_dir).check_returncode()
    one_line(leat(*command), 4, "topic 't' belongs to another user, who could not use the group", "create it as that user")
    assert json.loads(leat("group", "list", "t", "--json", check=True).stdout) == []
    run_as(leat, NOBODY, "group", "create", "t", "g", directory=leat_dir).check_returncode()
    assert leat("sub", "t", "--group", "g", "--exit").returncode == 0


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.touch()], ids=["FIFO", "file"])
def test_something_else_with_a_durable_topics_name_is_named(leat, data, make):
    data.mkdir()
    make(data / "t")
    for command in (("topic", "info", "t"), ("pub", "t", "x"), ("rm", "t"), ("sub", "t", "--exit")):
        one_line(leat(*command), 5, f"{data}/t is not a directory")
    for command in (("topic", "create", "t"), ("topic", "create", "t", "--durable", "os")):
        one_line(leat(*command), 3, f"{data}/t is not a directory")
    (data / "t").unlink()
    create(leat, "t")
    one_line(leat("topic", "create", "t"), 3, f"topic 't' exists already in {data}")
