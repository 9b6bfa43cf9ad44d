"""If these tests failed, `leat doctor` would report problems on a healthy machine, miss leftovers or
damage, or remove something that is in use."""
import json
import os
import subprocess
import time

from test_cli import NOBODY, info, one_line, run_as, wait_until

CHECKS = {"directory", "memory", "huge pages", "locked memory", "cores", "locks", "kernel",
          "RemoveIPC", "leftovers", "topics"}


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
    finished = subprocess.Popen(["true"])  # Its PID is that of a process that no longer exists.
    finished.wait()
    old = leat.directory / f"+new-{finished.pid}-0123456789abcdef"
    of_the_living = leat.directory / f"+new-{os.getpid()}-0123456789abcdef"
    young = leat.directory / f"+new-{finished.pid}-fedcba9876543210"
    for path in (old, of_the_living, young):
        path.mkdir()
    for path in (old, of_the_living):
        os.utime(path, (time.time() - 3600,) * 2)

    check = examine(leat)["leftovers"]
    assert check["status"] == "warning" and "--clean" in check["advice"]
    assert set(check["facts"]["names"]) == {"+deleted-0123456789abcdef", old.name}
    assert check["facts"]["bytes"] >= 100_000
    assert old.exists()
    text = leat("doctor", "--clean", check=True).stdout
    assert "removed" in text and old.name in text
    assert sorted(os.listdir(leat.directory)) == sorted([of_the_living.name, young.name])


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
