"""If these tests failed, `leat doctor` would report problems on a healthy machine, miss leftovers or
damage, or remove something that is in use."""
import fcntl
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from test_cli import NOBODY, info, one_line, run_as, wait_until
from test_durable import create, data, failing_syncs, publish  # noqa: F401
from test_store import flip, set_version

CHECKS = {"directory", "memory", "huge pages", "locked memory", "cores", "locks", "kernel",
          "RemoveIPC", "leftovers", "topics", "data directory"}


def examine(leat, *options, code=0):
    done = leat("doctor", "--json", *options)
    assert done.returncode == code, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is (code == 0)
    return {check["name"]: check for check in report["checks"]}


def test_sound_machine_has_no_problem(leat):
    checks = examine(leat)
    assert CHECKS <= set(checks)
    for check in checks.values():
        assert set(check) == {"name", "status", "found", "advice", "facts"}
        assert check["status"] in ("ok", "note", "warning")
        assert check["status"] == "ok" or check["advice"]
    facts = checks["directory"]["facts"]
    status = os.statvfs(leat.directory)
    assert facts["path"] == str(leat.directory) and facts["kind"] == "tmpfs"
    assert facts["size_bytes"] == status.f_blocks * status.f_frsize
    assert checks["cores"]["facts"]["usable"] == len(os.sched_getaffinity(0))
    assert checks["locks"]["facts"]["open_file_description_locks"] is True


def test_text_says_the_same(leat):
    lines = leat("doctor", check=True).stdout.splitlines()
    for name in CHECKS:
        assert any(f" {name} " in line and line.split()[0] in ("ok", "note", "warning")
                   for line in lines), name
    assert not any(line.startswith(".doctor") for line in os.listdir(leat.directory))


def test_looking_makes_nothing(leat, tmp_path):
    place = tmp_path / "not-there-yet"
    text = leat("--dir", place, "doctor", check=True).stdout
    assert "made when first used" in text and not place.exists()


def test_one_core_is_worth_a_warning(leat):
    core = min(os.sched_getaffinity(0))
    done = subprocess.run(["taskset", "-c", str(core), leat.executable, "doctor", "--json"],
                          env=leat.environment, capture_output=True, text=True, timeout=60)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["cores"]["status"] == "warning" and checks["cores"]["facts"]["usable"] == 1


def test_topics_nobody_uses_are_named(leat):
    leat("topic", "create", "idle", check=True)
    leat("topic", "create", "busy", check=True)
    leat.start("sub", "busy")
    wait_until(lambda: info(leat, "busy")["participants"])
    checks = examine(leat)
    assert checks["unused"]["status"] == "note" and checks["unused"]["facts"]["topics"] == ["idle"]
    assert checks["unused"]["facts"]["bytes"] > 8 << 20
    assert checks["topics"]["facts"]["count"] == 2


def test_dead_participants_are_named(leat):
    leat("topic", "create", "t", check=True)
    sub = leat.start("sub", "t")
    wait_until(lambda: info(leat, "t")["participants"])
    sub.kill()
    sub.wait()
    check = examine(leat)["dead"]
    assert check["status"] == "note" and f"t (pid {sub.pid})" in check["found"]


def test_leftovers_are_found_and_removed_on_request_only(leat):
    (leat.directory / "+deleted-0123456789abcdef").mkdir()
    (leat.directory / "+deleted-0123456789abcdef" / "records").write_bytes(b"x" * 100_000)
    # The number is that of a living process, as process 1 of a container is; nor does the time count.
    left = leat.directory / f"+new-{os.getpid()}-0123456789abcdef"
    of_the_living = leat.directory / "+new-1-0123456789abcdef"
    future = leat.directory / "+new-1-fedcba9876543210"
    for path in (left, of_the_living, future):
        path.mkdir()
    os.utime(future, (time.time() + 10**8,) * 2)
    os.utime(of_the_living, (0, 0))
    lock_file = leat.directory / "+new-1-0000000000000000"  # Of a process that made `+lock`.
    lock_file.touch()
    lock = os.open(of_the_living, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)

    check = examine(leat)["leftovers"]
    assert check["status"] == "warning" and "--clean" in check["advice"]
    found = {"+deleted-0123456789abcdef", left.name, future.name, lock_file.name}
    assert set(check["facts"]["names"]) == found
    assert check["facts"]["bytes"] >= 100_000
    assert left.exists()
    text = leat("doctor", "--clean", check=True).stdout
    assert "removed" in text and left.name in text
    assert os.listdir(leat.directory) == [of_the_living.name]
    os.close(lock)
    leat("doctor", "--clean", check=True)
    assert os.listdir(leat.directory) == []


def test_damaged_topic_needs_action(leat):
    leat("topic", "create", "t", check=True)
    with open(leat.directory / "t" / "control", "r+b") as control:
        control.write(b"\xff" * 64)
    leat("topic", "create", "half", check=True)
    (leat.directory / "half" / "control").unlink()
    checks = examine(leat, code=1)
    assert checks["unreadable"]["status"] == "problem"
    assert "t (" in checks["unreadable"]["found"] and "half (" in checks["unreadable"]["found"]
    one_line(leat("doctor"), 1, "1 problem")


def test_what_other_programs_keep_beside_topics_is_no_problem(leat):
    leat("topic", "create", "t", check=True)
    (leat.directory / "directory").mkdir()
    (leat.directory / "directory" / "some-file").write_text("mine\n")
    (leat.directory / "file").write_text("mine\n")
    (leat.directory / "link").symlink_to("nowhere")
    checks = examine(leat)
    assert checks["others"]["status"] == "note" and "other programs" in checks["others"]["advice"]
    assert checks["others"]["facts"]["names"] == ["directory", "file", "link"]
    assert checks["topics"]["facts"]["count"] == 1 and "unreadable" not in checks


def test_directory_that_others_share_is_no_problem(leat, as_root):
    """Somebody who may not write there may use the topics, as far as their modes allow."""
    leat.directory.chmod(0o755)
    leat("topic", "create", "open", "--mode", "0666", check=True)
    leat("topic", "create", "secret", check=True)
    done = run_as(leat, NOBODY, "doctor", "--json", directory=leat.directory)
    assert done.returncode == 0, done.stdout + done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["directory"]["status"] == checks["locks"]["status"] == "note"
    assert "use topics of others" in checks["directory"]["advice"]
    assert checks["topics"]["facts"]["count"] == 1
    assert checks["forbidden"]["facts"]["topics"] == ["secret"]


def test_too_little_room_needs_action(leat, as_root):
    mount = leat.directory / "tiny"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", mount], check=True)
    try:
        directory = examine(leat, "--dir", mount, code=1)["directory"]
        assert directory["status"] == "problem"
        assert f"mount -o remount,size=74M {mount}`" in directory["advice"]
    finally:
        subprocess.run(["umount", mount], check=True)


def test_directory_that_cannot_be_written_needs_action(leat, as_root):
    done = run_as(leat, NOBODY, "doctor", directory="/root")
    assert done.returncode == 1
    assert "problem  directory      /root cannot be" in done.stdout


# --- Files of durable topics ----------------------------------------------------------------------

def hold(leat, name="orders"):
    """A process that has the topic open."""
    holder = leat.start("sub", name)
    wait_until(lambda: info(leat, name)["participants"])
    return holder


def kill(process):
    os.killpg(process.pid, 9)
    process.wait()


def test_sound_durable_topics_are_counted(leat, data):
    check = examine(leat)["data directory"]
    assert check["status"] == "ok" and "made when first used" in check["found"]
    assert not data.exists()
    create(leat)
    publish(leat, ["one"])
    checks = examine(leat)
    status = os.statvfs(data)
    facts = checks["data directory"]["facts"]
    assert facts["path"] == str(data) and facts["size_bytes"] == status.f_blocks * status.f_frsize
    assert checks["durable topics"]["facts"]["count"] == 1
    assert checks["durable topics"]["facts"]["bytes"] >= 4096
    (data / "of-another-program").mkdir()
    (data / "file").touch()
    holder = hold(leat)
    checks = examine(leat)
    assert set(checks) == CHECKS | {"durable topics"}
    kill(holder)


def test_files_in_memory_get_a_warning(leat):
    create(leat)
    check = examine(leat)["data directory"]
    assert check["status"] == "warning" and check["facts"]["kind"] == "tmpfs"
    assert "a restart of the machine takes every durable topic" in check["advice"]


def test_little_room_for_files_gets_a_warning(leat, data, as_root):
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", data], check=True)
    try:
        check = examine(leat)["data directory"]
        assert check["status"] == "warning" and "publishers get `no space`" in check["advice"]
        create(leat, "orders", "--capacity", "64KiB", "--file-size", "256KiB")
        assert leat("pub", "orders", input="\n".join("x" * 1000 for _ in range(5000)) + "\n").returncode == 6
        check = examine(leat)["full disk"]
        assert check["status"] == "warning" and f"orders ({data}/orders)" in check["found"]
    finally:
        subprocess.run(["umount", "-l", data], check=True)


def test_topics_that_were_not_closed_are_named(leat, data):
    create(leat)
    create(leat, "closed")
    holder = hold(leat)
    assert "not closed" not in examine(leat)
    kill(holder)
    check = examine(leat)["not closed"]
    assert check["status"] == "note" and check["facts"]["topics"] == ["orders"]
    publish(leat, ["one"])
    assert "not closed" not in examine(leat)


def test_a_read_only_topic_needs_action(leat, data, failing_syncs):
    create(leat, level="fsync")
    holder = hold(leat)
    failing_syncs.touch()
    assert leat("pub", "orders", "x").returncode == 1
    failing_syncs.unlink()
    check = examine(leat, code=1)["read-only"]
    assert check["status"] == "problem" and "orders" in check["found"]
    assert "leat fsck --repair" in check["advice"]
    kill(holder)
    assert examine(leat, code=1)["read-only"]["facts"]["topics"] == ["orders"]
    leat("fsck", "--repair", "orders", check=True)
    assert "read-only" not in examine(leat)


@pytest.mark.parametrize("name", ["manifest", "checkpoint"])
def test_damaged_copies_are_named(leat, data, name):
    create(leat)
    publish(leat, ["one"])
    file = data / "orders" / f"{name}-1"
    flip(file, 40)
    check = examine(leat)["damaged files"]
    assert check["status"] == "warning" and check["facts"]["topics"] == [f"orders ({name}-1 is damaged)"]
    file.unlink()
    assert examine(leat)["damaged files"]["facts"]["topics"] == [f"orders ({name}-1 is missing)"]
    (data / "orders" / f"{name}-0").unlink()
    if name == "manifest":
        check = examine(leat, code=1)["lost topics"]
        assert check["status"] == "problem" and "backup" in check["advice"]
    else:
        check = examine(leat)["damaged files"]
        leat("fsck", "--repair", "orders", check=True)
        assert "damaged files" not in examine(leat)
    assert check["facts"]["topics"] == [f"orders (both copies of the {name})"]


def test_files_of_another_version_need_action(leat, data):
    create(leat)
    set_version(data / "orders" / "checkpoint-0", 2)
    check = examine(leat, code=1)["newer files"]
    assert check["status"] == "problem" and check["facts"]["topics"] == ["orders"]


def test_topics_of_others_are_no_problem(leat, leat_dir, data, as_root):
    create(leat, "secret")
    create(leat, "half", "--mode", "0640")
    for path in (*data.parents, data):
        if str(path).startswith("/tmp/"):
            path.chmod(0o755)
    leat_dir.chmod(0o755)
    done = run_as(leat, NOBODY, "doctor", "--json", directory=leat.directory)
    assert done.returncode == 0, done.stdout + done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["no access"]["status"] == "note"
    assert checks["no access"]["facts"]["topics"] == ["half", "secret"]
    assert checks["data directory"]["status"] == "note"


def test_what_recovery_cut_off_is_named(leat, data):
    create(leat)
    publish(leat, ["one"])
    (data / "orders" / "cut-segment-0000-00000000000000000000-0000000001-128").write_bytes(b"x" * 5000)
    check = examine(leat)["cut off"]
    assert check["status"] == "note" and check["facts"]["topics"] == ["orders (1 file of 8 KiB)"]


def test_leftovers_in_the_data_directory_are_removed_on_request_only(leat, data):
    create(leat)
    deleted = data / "+deleted-0123456789abcdef"
    left = data / "+new-1-0123456789abcdef"
    of_the_living = data / "+new-1-fedcba9876543210"
    for path in (deleted, left, of_the_living):
        path.mkdir()
        (path / "segment-x").write_bytes(b"x" * 10_000)
    lock = os.open(of_the_living, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    check = examine(leat)["data leftovers"]
    assert check["status"] == "warning" and "--clean" in check["advice"]
    assert set(check["facts"]["names"]) == {deleted.name, left.name}
    leat("doctor", "--clean", check=True)
    assert sorted(path.name for path in data.iterdir()) == sorted([of_the_living.name, "orders"])
    os.close(lock)
    leat("doctor", "--clean", check=True)
    assert "data leftovers" not in examine(leat)


def test_memory_without_files_is_named(leat, data, tmp_path):
    create(leat)
    holder = hold(leat)
    kill(holder)
    assert "stray memory" not in examine(leat)
    (data / "orders").rename(data / "moved")
    check = examine(leat)["stray memory"]
    assert check["status"] == "warning" and check["facts"]["topics"] == [f"orders ({data}/orders)"]


def test_files_of_open_topics_are_looked_at_wherever_they_are(leat, data, tmp_path):
    other = tmp_path / "other"
    leat("topic", "create", "t", "--durable", "os", "--data-dir", other, check=True)
    holder = leat.start("sub", "t", "--data-dir", other)
    wait_until(lambda: (leat.directory / "t").exists() and info(leat, "t")["participants"])
    flip(other / "t" / "manifest-0", 40)
    assert examine(leat)["damaged files"]["facts"]["topics"] == ["t (manifest-0 is damaged)"]
    kill(holder)


@pytest.fixture
def small_cgroup(as_root):
    """A memory cgroup of 24 MiB: a prefix that runs a command in it."""
    old, new = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    group = (old if old.is_dir() else new) / f"leat-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if old.is_dir() else "memory.max")).write_text(str(24 << 20))
    except OSError as error:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"no memory cgroup can be made here: {error}")
    yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"]
    wait_until(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def test_limit_of_a_memory_cgroup_is_known(leat, small_cgroup):
    def run(*arguments):
        return subprocess.run([*small_cgroup, leat.executable, *arguments], env=leat.environment,
                              input="", capture_output=True, text=True, timeout=60)
    checks = json.loads(run("doctor", "--json").stdout)["checks"]
    memory = {check["name"]: check for check in checks}["memory"]
    assert memory["facts"]["limit_bytes"] == 24 << 20
    assert 0 < memory["facts"]["limit_free_bytes"] < 24 << 20
    assert "cgroup allows 24 MiB" in memory["found"]
    done = run("topic", "create", "t", "--capacity", "64MiB")  # It used to be killed.
    one_line(done, 6, "no memory", "a memory cgroup allows 24 MiB")
    assert os.listdir(leat.directory) == []
    assert run("topic", "create", "t", "--capacity", "18MiB").returncode == 0
    one_line(run("pub", "other"), 6, "no memory", "a memory cgroup allows 24 MiB")  # Of 8 MiB.
    assert run("pub", "t").returncode == 0
