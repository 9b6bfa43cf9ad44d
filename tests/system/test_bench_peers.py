"""If these tests failed, bench/peers/run.py would count wrong or lost records as received, hide a rival
that does not run, hang, or leave processes or files behind. Nothing here checks how fast anything is.

Only rivals from Debian packages are run. Those on the JVM and in Rust need package registries, so only
`make bench-peers` runs them.
"""
import array
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import EXECUTABLE, ROOT
from test_cli import wait_until

PEERS = ROOT / "bench" / "peers"
sys.path.insert(0, str(PEERS))

import roles  # noqa: E402
import scenarios  # noqa: E402

VARIANTS = ("spinning", "blocking")
SIZES = {"oneway": [8, 32, 100, 1024], "pingpong": [8, 100, 1024], "group": [100], "crash": [64]}
LATENCIES = {"p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "min_ns", "max_ns", "mean_ns",
             "stddev_ns"}
RUN_KEYS = LATENCIES | {"messages_per_second", "cpu_ns_per_message", "sender_cpu_ns_per_message",
                        "receiver_cpu_ns_per_message", "context_switches_per_message"}


def run_peers(*arguments, timeout=280, **environment):
    return subprocess.run([sys.executable, PEERS / "run.py", "--leat", EXECUTABLE,
                           *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env={**os.environ, **environment})


def directories_of(process):
    return glob.glob(f"/dev/shm/{roles.PREFIX}{process}-*")


def processes_in(directory):
    """Processes that have the directory on their command line or in their environment."""
    found = []
    for process in glob.glob("/proc/[0-9]*"):
        try:
            told = Path(process, "cmdline").read_bytes() + Path(process, "environ").read_bytes()
        except OSError:
            continue
        if str(directory).encode() in told:
            found.append(int(process[len("/proc/"):]))
    return found


def check_run(run, pattern):
    assert set(run) == RUN_KEYS | ({"line_ns"} if pattern in ("oneway", "pingpong") else set())
    assert run.get("line_ns", 1) > 0  # It is null only if the run failed.
    assert run["messages_per_second"] > 0
    latencies = [run[key] for key in ("min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns",
                                      "max_ns") if run[key] is not None]
    assert latencies == sorted(latencies)
    # A quick run does not make the 10,000 round trips that p99.99 needs.
    assert {key for key in LATENCIES if run[key] is not None} == (
        LATENCIES - {"p9999_ns"} if pattern == "pingpong" else set())
    assert run["cpu_ns_per_message"] > 0 and run["context_switches_per_message"] >= 0


def test_rivals_are_measured_in_turns_with_ours(tmp_path):
    file = tmp_path / "peers.json"
    done = run_peers("--only", "pipe,boost-mq", "--quick", "--runs", "2", "--crash-limit", "5",
                     "--json", file)
    assert done.returncode == 0, done.stderr
    for title in ("One way", "Round trip, 100 B", "Each record to one of several", "is killed",
                  "pipe, blocking, 64 at a time"):
        assert title in done.stdout
    report = json.loads(file.read_text())
    for field in ("machine", "version", "commit", "date", "command", "parameters"):
        assert report[field], field
    assert report["not_run"] == []
    assert set(report["settings"]) == {"leat", "pipe", "boost-mq"}

    rows = {}
    for result in report["results"]:
        assert result["verified"] and result["note"] == "", result
        assert len(result["runs"]) == 2 and result["rate"] == 0 and result["baseline"] is False
        row = rows.setdefault((result["method"], result["variant"], result["pattern"],
                               result.get("batch")), [])
        row.append(result["size"])
        if result["pattern"] == "crash":
            trials = [run["recovery_ns"] for run in result["runs"]]
            assert all(ns is None or ns > 0 for ns in trials)
            assert result["median"]["never"] == trials.count(None)
        else:
            for run in [*result["runs"], result["median"]]:
                check_run(run, result["pattern"])
    assert {key[1:] for key in rows if key[0] == "leat"} == {
        *((variant, "oneway", batch) for variant in VARIANTS for batch in (1, 64)),
        *((variant, "pingpong", 1) for variant in VARIANTS),
        ("blocking", "group", 1), ("blocking", "group", 0), ("spinning", "crash", 1)}
    for pattern, sizes in SIZES.items():
        for method in ("leat", "pipe", "boost-mq"):
            found = [row for key, row in rows.items() if key[0] == method and key[2] == pattern]
            assert found and all(row == sizes for row in found), (method, pattern, rows)
    assert done.stdout == run_peers("--show", file).stdout + f"\nAll runs: {file}\n"


def test_the_table_in_the_repository_is_that_of_its_results():
    results = ROOT / "bench" / "results" / "peers"
    assert run_peers("--show", results / "results.json").stdout == (results / "table.txt").read_text()


def test_a_rival_that_cannot_be_built_is_listed_with_the_reason(tmp_path):
    (tmp_path / "bin").mkdir()
    for tool in ("as", "ld"):  # Needed to compile Leat's own side.
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    file = tmp_path / "peers.json"
    done = run_peers("--only", "iceoryx2", "--quick", "--patterns", "group", "--json", file,
                     PATH=str(tmp_path / "bin"), CXX=shutil.which("g++"))
    assert done.returncode == 0, done.stderr
    reason = "cargo is missing; tools/install-deps.sh peers installs it"
    assert f"  iceoryx2: {reason}" in done.stdout.splitlines()
    report = json.loads(file.read_text())
    assert report["not_run"] == [{"method": "iceoryx2", "reason": reason}]
    assert {result["method"] for result in report["results"]} == {"leat"}


def test_nothing_is_left_behind_on_ctrl_c():
    run = subprocess.Popen([sys.executable, PEERS / "run.py", "--leat", EXECUTABLE, "--only", "pipe",
                            "--patterns", "pingpong", "--quick", "--runs", "100000"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           start_new_session=True)
    try:
        def is_measuring():
            assert run.poll() is None, run.stderr.read()
            return any(len(processes_in(directory)) >= 2 for directory in directories_of(run.pid))
        wait_until(is_measuring, seconds=120)
        directories = directories_of(run.pid)
        run.send_signal(signal.SIGINT)
        output, errors = run.communicate(timeout=30)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 130
    assert (output, errors) == ("", "run.py: interrupted\n")
    assert directories_of(run.pid) == []
    wait_until(lambda: not any(processes_in(directory) for directory in directories))


def shell_role(name, script, **options):
    return roles.Role(name, ["/bin/sh", "-c", script], **options)


def is_gone(role):
    try:
        os.killpg(role.process.pid, 0)
        return False
    except ProcessLookupError:
        return True


@pytest.mark.parametrize("script, waits_for", [
    ("sleep 1000", "ready"),
    ("echo ready; sleep 1000 & wait", "warm"),
    ("echo ready; read go; echo warm; read go; sleep 1000", "result")])
def test_a_role_that_hangs_is_stopped_by_the_time_limit(script, waits_for):
    helper = shell_role("helper", "echo ready; sleep 1000", is_helper=True)
    role = shell_role("sleeper", script)
    with pytest.raises(roles.TooLate, match="the sleeper was not done within 0.5 s"):
        roles.measure([helper, role], os.sched_getaffinity(0), 0.5)
    for one in (helper, role):
        wait_until(lambda one=one: is_gone(one))


@pytest.mark.parametrize("script, reason", [
    ("echo it is broken >&2; exit 3", "the reader ended with 3: it is broken"),
    ("echo hello", "the reader said 'hello' instead of 'ready'"),
    ("echo ready; read go; echo warm; read go; echo '[1'", "the reader said '\\[1', which is no"),
    ("echo ready; read go; echo warm; read go; echo '{\"ended_ns\": \"soon\"}'", "which is no result")])
def test_what_a_role_did_wrong_is_said(script, reason):
    with pytest.raises(roles.Failed, match=reason):
        roles.measure([shell_role("reader", script)], os.sched_getaffinity(0), 10)


def test_a_role_that_dies_is_named_while_another_is_waited_for():
    reader = shell_role("reader", "echo ready; read go; echo warm; sleep 1000")
    writer = shell_role("writer", "echo ready; read go; echo warm; read go; exit 4")
    with pytest.raises(roles.Failed, match="the writer ended with 4"):
        roles.measure([reader, writer], os.sched_getaffinity(0), 30)


def test_a_stream_that_never_recovers_ends_the_trial():
    waiting = "echo ready; read go; echo warm; sleep 1000"
    group = [shell_role(name, waiting) for name in ("watcher", "survivor", "victim")]
    assert roles.measure_kill(group, os.sched_getaffinity(0), 0.01, 10, 0.3) is None
    for role in group:
        wait_until(lambda role=role: is_gone(role))


@pytest.mark.parametrize("received, is_right", [
    (([0, 2], [1, 3]), True), (([3, 2, 1], [0]), True), (([0, 1], [2]), False),
    (([0, 1, 2], [2]), False), (([0, 1, 2, 3], [3]), False), (([0, 1, 2, 4], []), False)])
def test_each_record_must_be_received_once(tmp_path, received, is_right):
    files = []
    for i, numbers in enumerate(received):
        files.append(tmp_path / str(i))
        files[-1].write_bytes(array.array("Q", numbers).tobytes())
    if is_right:
        scenarios.check_receipts(files, 4)
    else:
        with pytest.raises(roles.Failed, match="records were received"):
            scenarios.check_receipts(files, 4)


@pytest.mark.parametrize("arguments, code, word", [
    (["--only", "nothing"], 2, "'nothing'"), (["--only", ""], 2, "aeron"),
    (["--patterns", "fast"], 2, "pingpong"), (["--pin", "a,b"], 2, "--pin"),
    (["--pin", "4711"], 2, "4711"), (["--runs", "0"], 2, "--runs"), (["--limit", "-1"], 2, "limits"),
    (["--runs", "many"], 2, "--runs"), (["--fast"], 2, "--fast"),
    (["--show", "/nowhere/peers.json"], 3, "/nowhere"), (["--show", __file__], 1, "--json"),
    (["--leat", "/nowhere/leat"], 3, "make build"), (["--json", "/nowhere/peers.json"], 3, "/nowhere")])
def test_bad_usage_gets_one_line(arguments, code, word):
    done = run_peers(*arguments, timeout=20)
    assert done.returncode == code
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert word in done.stderr
