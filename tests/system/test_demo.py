"""If these tests failed, `leat demo` would print a wrong table or JSON, call lost or changed records
verified, or leave processes or files behind."""
import json
import mmap
import os
import pty
import re
import signal
import subprocess

import pytest

from test_cli import one_line, wait_until
from test_pub_sub import Reader

SMALL = ["--records", "20000", "--runs", "1"]


def left_behind(leat):
    return [path.name for path in leat.directory.iterdir() if path.name != "+lock"]


def children_of(pid):
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as stat:
                if int(stat.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(name))
        except OSError:
            pass  # The process has ended meanwhile.
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_table_has_three_workloads_in_three_phases_beside_shmfifo(leat):
    done = leat("demo", *SMALL, check=True)
    text = done.stdout
    assert done.stderr == ""  # No progress bar without a terminal.
    for title in ("text, 133 bytes", "structured CheckImeiReq, 51 bytes", "serialized CheckImeiReq"):
        assert text.count(f"\n{title}") == 1
    for phase in ("sequential:", "concurrent:", "broadcast:"):
        assert len(re.findall(rf"^  {phase}", text, re.M)) == 3
    assert len(re.findall(r"^    prepare memory +\d+\.\d", text, re.M)) == 9
    assert len(re.findall(r"^    publisher +\d+\.\d.* M/s", text, re.M)) == 9
    assert len(re.findall(r"^    (?:slowest )?subscriber +\d+\.\d.* M/s", text, re.M)) == 9
    assert "an AMD FX-6100 with 3.3 GHz" in text.partition("text, 133 bytes")[0]
    last = text.splitlines()[-1]
    assert last == ("OK: every record arrived once, in order, with the right content "
                    "(180,000 published, 300,000 received, each one checked).")
    assert left_behind(leat) == []


@pytest.mark.parametrize("runs", [1, 3, 5, 6, 12])
def test_columns_follow_the_runs(leat, runs):
    """ShmFifo's five beside them, as far as there are columns; the mean is of all."""
    text = leat("demo", "--records", "500", "--runs", runs, check=True).stdout
    columns = min(runs, 10)
    head = next(line for line in text.splitlines() if " run 1 " in line)
    expected = [word for i in range(columns) for word in ("run", str(i + 1))]
    assert head.split() == [*expected, "mean", "rate", "ShmFifo's"]
    ends = [found.end() for found in re.finditer(r"run \d+|mean", head)]
    for line in re.findall(r"^    (?:prepare memory|publisher|subscriber) .*$", text, re.M):
        values = line[24:ends[-1]].split()
        assert len(values) == columns + 1, line
        assert all(line[end - 1].isdigit() for end in ends), line
    for name, each, mean in (("writer", [908, 917, 911, 926, 918], "916.0"),
                             ("reader", [591, 585, 593, 584, 589], "588.4"),
                             ("writer", [900, 895, 908, 907, 905], "903.0"),
                             ("reader", [585, 588, 601, 599, 597], "594.0")):
        shown = " +".join(map(str, [*each[:columns], mean]))
        assert len(re.findall(rf"^    ShmFifo: {name} +{shown} ", text, re.M)) == 1


def test_json_has_the_promised_shape(leat):
    done = leat("demo", "--records", "5000", "--runs", "2", "--json", check=True)
    report = json.loads(done.stdout)
    assert set(report) == {"records", "verified", "workloads"}
    assert report["records"] == 5000 and report["verified"] is True
    assert [(w["name"], w["phase"]) for w in report["workloads"]] == [
        (name, phase) for name in ("text", "structured", "serialized")
        for phase in ("sequential", "concurrent", "broadcast")]
    for workload in report["workloads"]:
        assert set(workload) == {"name", "phase", "runs"} and len(workload["runs"]) == 2
        for run in workload["runs"]:
            assert set(run) == {"prepare_ms", "publish_ms", "subscribe_ms"}
            assert all(value > 0 for value in run.values())


def test_one_record_is_enough(leat):
    last = leat("demo", "--records", "1", "--runs", "1", check=True).stdout.splitlines()[-1]
    assert "9 published, 15 received" in last


def test_progress_is_shown_on_a_terminal(leat):
    mine, theirs = pty.openpty()
    try:
        demo = leat.start("demo", "--records", "300000", "--runs", "2", stdout=subprocess.DEVNULL,
                          stderr=theirs)
        shown = Reader(mine).until(lambda text: "run 2 of 2" in text and "serialized" in text, 60)
        assert re.search(r"\[#*-*\] +\d+ %  text, sequential, run 1 of 2", shown)
        assert demo.wait(60) == 0
    finally:
        os.close(mine)
        os.close(theirs)


def test_records_that_were_changed_on_the_way_are_noticed(leat):
    """Changes records of the running demo, which must not call them verified."""
    demo = leat.start("demo", "--records", "1000000", "--runs", "3", "--json")
    changed = 0
    while demo.poll() is None:
        for records in leat.directory.glob("+demo-*/text/records"):
            try:
                with open(records, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
                    # Changes only the content of a payload in the middle, and no header.
                    at = memory.find(b"holahola", len(memory) // 3)
                    if at > 0:
                        memory[at:at + 4] = b"HOLA"
                        changed += 1
            except (OSError, ValueError):
                pass  # The file is gone, or just being created.
    output, errors = demo.communicate(timeout=60)
    assert changed > 0
    assert demo.returncode == 1, output
    assert re.fullmatch(r"leat: subscriber.* of workload text: record \d+ has the wrong content\n",
                        errors)
    report = json.loads(output)
    assert report["verified"] is False
    assert left_behind(leat) == []


def test_topic_deleted_under_it_is_noticed(leat):
    """The last line of the table says so, too."""
    demo = leat.start("demo", "--records", "1000000", "--runs", "5")
    wait_until(lambda: list(leat.directory.glob("+demo-*/text/control")))
    while demo.poll() is None:
        for directory in leat.directory.glob("+demo-*"):
            leat("--dir", directory, "topic", "delete", "text", "--force")
    output, errors = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert errors.count("\n") == 1 and "text" in errors
    assert output.splitlines()[-1].startswith("FAILED: not every record arrived")


def test_worker_that_is_killed_is_noticed(leat):
    demo = leat.start("demo", "--records", "5000000", "--runs", "1")
    wait_until(lambda: children_of(demo.pid))
    os.kill(children_of(demo.pid)[0], signal.SIGKILL)
    _, errors = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert errors == "leat: publisher of workload text was killed by signal 9 (Killed)\n"
    assert left_behind(leat) == []


def test_too_little_shared_memory_says_how_much_is_needed(leat, as_root):
    mount = leat.directory / "tiny"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", mount], check=True)
    try:
        done = leat("--dir", mount, "demo", "--runs", "1")
        one_line(done, 6, "MiB needed", "16 MiB free", "mount -o remount,size=", f"M {mount}`",
                 "--dir")
        assert done.stdout == ""
        needed = float(re.search(r"([\d.]+) MiB needed", done.stderr).group(1))
        assert 133 < needed < 250  # 1,000,000 times 133 bytes and headers.
        assert [path.name for path in mount.iterdir() if path.name != "+lock"] == []
        # A smaller demo fits, and runs.
        leat("--dir", mount, "demo", *SMALL, check=True)
    finally:
        subprocess.run(["umount", mount], check=True)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_stopped_demo_takes_everything_with_it(leat, end):
    demo = leat.start("demo", "--records", "5000000")
    wait_until(lambda: children_of(demo.pid))
    workers = children_of(demo.pid)
    demo.send_signal(end)
    output, errors = demo.communicate(timeout=30)
    assert demo.returncode == 1
    assert errors == "leat: stopped on request before everything was verified\n"
    assert not any(map(is_alive, workers))
    assert left_behind(leat) == []


def test_killed_demo_leaves_no_process_and_a_directory_that_doctor_removes(leat):
    demo = leat.start("demo", "--records", "5000000")
    wait_until(lambda: children_of(demo.pid))
    workers = children_of(demo.pid)
    running, = left_behind(leat)
    assert "none" in next(line for line in leat("doctor").stdout.splitlines() if "leftovers" in line)
    demo.kill()
    demo.wait()
    wait_until(lambda: not any(map(is_alive, workers)))
    assert left_behind(leat) == [running]
    assert running in leat("doctor", check=True).stdout
    assert running in leat("doctor", "--clean", check=True).stdout
    assert left_behind(leat) == []


def test_two_demos_at_once_do_not_disturb_each_other(leat):
    both = [leat.start("demo", *SMALL, "--json") for _ in range(2)]
    for demo in both:
        output, _ = demo.communicate(timeout=120)
        assert demo.returncode == 0 and json.loads(output)["verified"] is True
