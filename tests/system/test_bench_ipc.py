"""If these tests failed, `leat bench ipc` would print wrong or missing figures for a method, accept bad
options, or leave files, queues or processes behind.

Nothing here checks how fast anything is.
"""
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from test_bench import run_json
from test_cli import one_line, wait_until

METHODS = set("""tcp domain seqpacket dgram socketpair udp pipe fifo shm mmap mq-sysv mq-posix eventfd
              signal futex condvar sem-posix sem-sysv zeromq-ipc zeromq-tcp nng boost-mq io_uring
              splice vm-readv leat leat-group""".split())
FORBIDDEN = {"io_uring", "vm-readv"}  # Some containers forbid these.
LATENCIES = {"p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "min_ns", "max_ns", "mean_ns",
             "stddev_ns"}
ENOUGH = {"p90_ns": 10, "p99_ns": 100, "p999_ns": 1000, "p9999_ns": 10_000}  # Messages in a run.
FIGURES = LATENCIES | {"elapsed_ns", "messages_per_second", "cpu_ns_per_message",
                       "sender_cpu_ns_per_message", "receiver_cpu_ns_per_message",
                       "context_switches_per_message"}

BLOCK = re.compile(r"""
============ RESULTS ================
Message size:       \d+
Message count:      \d+
Total duration:     \d+\.\d{3}\tms
Average duration:   \d+\.\d{3}\tus
Minimum duration:   \d+\.\d{3}\tus
Maximum duration:   \d+\.\d{3}\tus
Standard deviation: \d+\.\d{3}\tus
Message rate:       \d+\tmsg/s
=====================================
""")


def check_results(report, runs, pattern):
    for result in report["results"]:
        assert result["pattern"] == pattern
        assert result["variant"] in ("spinning", "blocking")
        if result["median"] is None:
            assert result["note"].startswith("not supported: ") and result["runs"] == []
            assert result["verified"] is False
            continue
        assert result["verified"] is True
        assert result["note"] == "" or pattern == "rate" and "not keep up" in result["note"]
        assert len(result["runs"]) == runs
        for run in [*result["runs"], result["median"]]:
            assert set(run) == FIGURES
            for name in LATENCIES:
                few = result["count"] < ENOUGH.get(name, 1) * runs
                assert (run[name] is None) == (few or pattern == "oneway"), name
            assert run["messages_per_second"] > 0 and run["cpu_ns_per_message"] >= 0
            if pattern != "oneway":
                ascending = [run[name] for name in ("min_ns", "p50_ns", *ENOUGH, "max_ns")
                             if run[name] is not None]
                assert ascending == sorted(ascending)
                assert run["stddev_ns"] >= 0


def kernel_objects():
    """Names of all objects that a process could leave behind."""
    found = {str(path) for pattern in ("leat-bench-*",)
             for place in ("/dev/shm", "/tmp", "/dev/mqueue") for path in Path(place).glob(pattern)}
    for kind in ("msg", "sem", "shm"):
        lines = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]
        found |= {f"{kind} {line.split()[1]}" for line in lines}
    return found


def test_every_method_answers(leat):
    report = run_json(leat, "ipc", "-c", "300", "-s", "100", "--runs", "2")
    check_results(report, 2, "pingpong")
    results = report["results"]
    assert {result["method"] for result in results} == METHODS
    refused = {result["method"] for result in results if not result["median"]}
    assert refused <= FORBIDDEN, "100 B are no problem for any of them"
    both = {"tcp", "pipe", "mq-sysv", "futex", "sem-posix", "zeromq-ipc", "io_uring", "leat"}
    for method in both:
        assert {r["variant"] for r in results if r["method"] == method} == {"spinning", "blocking"}
    baselines = {(r["method"], r["variant"]) for r in results if r["baseline"]}
    assert baselines == {("shm", "spinning"), ("mmap", "spinning"), ("futex", "spinning"),
                         ("sem-posix", "spinning")}
    assert all(result["count"] == 300 for result in results if result["median"])
    assert report["clock_ns"] >= 0 and " bench ipc -c 300 -s 100" in report["command"]
    assert {"mitigations", "governor", "hypervisor", "kernel", "cpu"} <= set(report["machine"])
    libraries = report["machine"]["libraries"]
    assert set(libraries) == {"zeromq", "nng", "boost"}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in libraries.values())


@pytest.mark.parametrize("size", ["1", "1000", "4096", "64KiB", "1MiB"])
@pytest.mark.parametrize("pattern", ["pingpong", "oneway", "rate"])
def test_any_size_passes_or_says_why_not(leat, pattern, size):
    how = ["--rate", "1000"] if pattern == "rate" else ["--pattern", pattern]
    # Batches of 64 MiB take half a minute, mostly for page faults in new memory.
    has_batches = pattern == "oneway" and size != "1MiB"
    if pattern == "oneway" and not has_batches:
        how += ["--batch", "1"]
    report = run_json(leat, "ipc", "-c", "20", "-s", size, "--runs", "1", *how)
    check_results(report, 1, pattern)
    unsupported = {r["method"] for r in report["results"] if r["median"] is None}
    allowed = {"64KiB": {"udp", "mq-sysv", "mq-posix"},
               "1MiB": {"udp", "mq-sysv", "mq-posix", "seqpacket", "dgram"}}.get(size, set())
    assert unsupported <= allowed | FORBIDDEN
    if has_batches:
        batched = {r["method"] for r in report["results"] if r["batch"] == 64 and r["median"]}
        assert {"pipe", "leat", "leat-group"} <= batched


def test_one_way_without_and_with_batches(leat):
    report = run_json(leat, "ipc", "-c", "500", "--pattern", "oneway", "--runs", "1", "--method",
                      "pipe,udp,dgram,shm,zeromq-ipc,leat,leat-group")
    check_results(report, 1, "oneway")
    batches = {}
    for result in report["results"]:
        batches.setdefault(result["method"], set()).add(result["batch"])
    assert batches == {"pipe": {1, 64}, "udp": {1, 64}, "dgram": {1, 64}, "shm": {1},
                       "zeromq-ipc": {1}, "leat": {1, 64}, "leat-group": {1, 64}}


def test_a_batch_that_was_asked_for_is_refused_by_name(leat):
    report = run_json(leat, "ipc", "-c", "500", "--pattern", "oneway", "--runs", "1", "--batch", "8",
                      "--method", "pipe,shm")
    notes = {result["method"]: result["note"] for result in report["results"]}
    assert notes == {"pipe": "", "shm": "not supported: it has no batches"}


def test_chooses_how_many_messages_one_way(leat):
    """It sends enough messages to take some time: far more through the log than by signals."""
    report = run_json(leat, "ipc", "--pattern", "oneway", "--runs", "1", "--batch", "1", "--method",
                      "leat,signal")
    counts = {(result["method"], result["variant"]): result["count"] for result in report["results"]}
    assert counts["leat", "spinning"] > 10 * counts["signal", "blocking"] >= 10_000


def test_latency_at_a_rate_counts_from_when_a_message_was_due(leat):
    report = run_json(leat, "ipc", "-c", "200", "--rate", "2000", "--runs", "1", "--method",
                      "pipe,leat,futex")
    check_results(report, 1, "rate")
    for result in report["results"]:
        assert result["rate"] == 2000
        # 200 messages at 2000 per second take 0.1 s, however fast the method is.
        assert result["median"]["elapsed_ns"] > 0.09e9
        assert result["median"]["sender_cpu_ns_per_message"] is None


def test_a_rate_may_be_low(leat):
    report = run_json(leat, "ipc", "--rate", "20", "--runs", "1", "--method", "pipe", "--block")
    assert report["results"][0]["count"] == 20


def test_who_cannot_keep_up_is_named(leat):
    command = ("ipc", "--rate", "100000000", "-c", "2000", "--runs", "1", "--method", "signal")
    result = run_json(leat, *command)["results"][0]
    assert result["verified"] and "could not keep up" in result["note"]
    assert "could not keep up" in leat("bench", *command, check=True).stdout


def test_a_pause_of_the_receiver_makes_all_that_were_due_late(leat):
    """No coordinated omission: messages that wait for a stopped receiver count, too."""
    running = leat.start("bench", "ipc", "-c", "6000", "--rate", "1000", "--runs", "1", "--warmup",
                         "0", "--method", "pipe", "--block", "--json")
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    wait_until(lambda: len(children.read_text().split()) == 2)
    receiver = int(children.read_text().split()[0])
    # After this time the measurement has certainly started.
    subprocess.run(["sleep", "1.5"], check=True)
    os.kill(receiver, signal.SIGSTOP)
    subprocess.run(["sleep", "1.5"], check=True)
    os.kill(receiver, signal.SIGCONT)
    out, _ = running.communicate(timeout=60)
    median = json.loads(out)["results"][0]["median"]
    # About 1500 of the 6000 messages were due while the receiver was stopped, the first for 1.5 s.
    assert median["max_ns"] > 1e9
    assert median["p90_ns"] > 100e6


def test_variants_can_be_chosen(leat):
    for option, variant in (("--busy", "spinning"), ("--block", "blocking")):
        report = run_json(leat, "ipc", "-c", "100", "--runs", "1", option)
        assert {result["variant"] for result in report["results"]} == {variant}


def test_compatible_output_is_that_of_ipc_bench(leat):
    done = leat("bench", "ipc", "--compat", "-c", "100", "-s", "4096", "--method", "tcp,shm",
                check=True)
    blocks = re.split(r"(?<=={37}\n)(?=\n)", done.stdout)
    assert len(blocks) == 2 and all(BLOCK.fullmatch(block) for block in blocks), done.stdout
    assert "Message size:       4096\nMessage count:      100\n" in blocks[0]


def test_compatible_output_leaves_out_what_is_not_supported(leat):
    done = leat("bench", "ipc", "--compat", "-c", "100", "-s", "70000", "--method", "udp,pipe",
                check=True)
    assert BLOCK.fullmatch(done.stdout) and done.stderr.startswith("leat: udp: not supported: ")


def test_the_longest_but_one_in_ten_thousand_needs_ten_thousand(leat):
    report = run_json(leat, "ipc", "-c", "20000", "--runs", "2", "--method", "shm")
    check_results(report, 2, "pingpong")
    assert report["results"][0]["median"]["p9999_ns"] > 0


def test_a_percentile_of_too_few_messages_is_not_said(leat):
    command = ("bench", "ipc", "--runs", "1", "--method", "pipe", "--busy")
    few = leat(*command, "-c", "200", check=True).stdout
    row = next(line.split() for line in few.splitlines() if line.startswith("pipe"))
    assert row[3] != "-" and row[4] == "-", few  # p99 and p99.9
    assert "a p99.9 needs 1000" in few and "one run" in few and "median" not in few
    enough = leat(*command, "-c", "1000", check=True).stdout
    row = next(line.split() for line in enough.splitlines() if line.startswith("pipe"))
    assert "-" not in row and "needs" not in enough


def test_table_has_a_row_for_each(leat):
    out = leat("bench", "ipc", "-c", "100", "--runs", "1", "--method", "pipe,shm,leat",
               check=True).stdout
    rows = [line.split()[:2] for line in out.splitlines()]
    for row in (["pipe", "spinning"], ["pipe", "blocking"], ["shm", "spinning"],
                ["leat", "spinning"], ["leat", "blocking"]):
        assert rows.count(row) == 1, out


@pytest.mark.parametrize("how, head, below", [
    ([], "p50 ns p99 ns p99.9 ns max ns mean ns messages/s CPU ns switches",
     ["Time of a round trip", "messages/s: round trips per second.", "both sides per round trip."]),
    (["--pattern", "oneway"], "batch messages/s CPU ns switches",
     ["in one direction", "batch: messages", "both sides per message."]),
    (["--rate", "2000"], "p50 ns p99 ns p99.9 ns max ns mean ns messages/s CPU ns switches",
     ["when a message was due", "at 2000 messages/s", "the receiver per message."]),
])
def test_table_says_the_unit_of_every_figure(leat, how, head, below):
    out = leat("bench", "ipc", "-c", "100", "--runs", "1", "--method", "pipe", *how, check=True).stdout
    assert f"method variant {head}" in [" ".join(line.split()) for line in out.splitlines()], out
    for words in ["messages of 100 B", "ns: nanoseconds; k, M: thousand, million.", *below]:
        assert words in out, out


def test_two_at_once_from_anywhere_leave_nothing(leat, tmp_path):
    """It uses no fixed names or ports, and nothing in the working directory."""
    before = kernel_objects()
    command = ["bench", "ipc", "-c", "200", "--runs", "2", "--json"]
    running = [leat.start(*command, cwd=where) for where in ("/", tmp_path, "/")]
    for process in running:
        out, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
        report = json.loads(out)
        check_results(report, 2, "pingpong")
        assert {r["method"] for r in report["results"] if r["verified"]} >= METHODS - FORBIDDEN
    assert list(tmp_path.iterdir()) == []
    assert list(leat.directory.iterdir()) == []
    assert kernel_objects() <= before


@pytest.mark.parametrize("method", sorted(METHODS - FORBIDDEN))
def test_ctrl_c_leaves_nothing(leat, method):
    before = kernel_objects()
    running = leat.start("bench", "ipc", "-c", "50000000", "--method", method)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    wait_until(lambda: len(children.read_text().split()) == 2)
    os.killpg(running.pid, signal.SIGINT)
    out, errors = running.communicate(timeout=20)
    assert running.returncode == 130, errors
    assert out == "" and len(errors.splitlines()) == 1
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)
    assert list(leat.directory.iterdir()) == []
    assert kernel_objects() <= before


def test_what_finds_no_place_is_named_and_the_others_go_on(leat, tmp_path):
    leat.environment["TMPDIR"] = str(tmp_path / "none")
    done = leat("bench", "ipc", "-c", "20", "--runs", "1", "--method", "fifo,mmap,pipe")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "fifo" in done.stderr and "failed: " in done.stderr
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line}
    assert "failed: " in rows["mmap"] and "failed: " not in rows["pipe"]


def test_what_takes_too_long_is_stopped_and_named(leat):
    done = leat("bench", "ipc", "-c", "5000000", "--runs", "1", "--block", "--method", "tcp,pipe",
                "--time-limit", "1", timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("leat: tcp (blocking) failed: not finished after 1 s")
    assert done.stdout.count("failed: not finished after 1 s") == 2


def test_sweep_leaves_a_file_for_each_step_and_goes_on(leat, tmp_path):
    command = ("bench", "ipc", "--sweep", "sizes=8..100", "--out", tmp_path / "results", "-c", "100",
               "--runs", "1", "--method", "pipe,leat")
    first = leat(*command, check=True)
    assert "0 steps left" in first.stdout
    files = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert files == sorted(f"{pattern}-{size}.json" for pattern in ("pingpong", "oneway")
                           for size in (8, 32, 100))
    for name in files:
        report = json.loads((tmp_path / "results" / name).read_text())
        check_results(report, 1, name.split("-")[0])

    (tmp_path / "results/oneway-32.json").unlink()
    (tmp_path / "results/oneway-8.json").write_text('{"half of')  # Damaged, so measured again.
    failed = tmp_path / "results/pingpong-8.json"  # Changed as if a row had failed.
    failed.write_text(failed.read_text().replace('"note":""', '"note":"failed: for once"', 1))
    stamps = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "results").iterdir()}
    second = leat(*command, check=True)
    assert second.stdout.count("is there") == 3
    again = {path.name for path in (tmp_path / "results").iterdir()
             if stamps.get(path.name) != path.stat().st_mtime_ns}
    assert again == {"oneway-32.json", "oneway-8.json", "pingpong-8.json"}

    other = leat(*command[:-1], "pipe", check=True)  # Other parameters mean another measurement.
    assert "is there" not in other.stdout


def test_sweep_at_a_rate(leat, tmp_path):
    leat("bench", "ipc", "--sweep", "sizes=8,100", "--rate", "2000", "--out", tmp_path, "-c", "100",
         "--runs", "1", "--method", "pipe,leat", check=True)
    files = {"rate-2000-8.json", "rate-2000-100.json"}
    assert {path.name for path in tmp_path.iterdir()} == files
    for name in files:
        check_results(json.loads((tmp_path / name).read_text()), 1, "rate")


@pytest.mark.parametrize("arguments,words", [
    (["--method", "telepathy"], ["telepathy", "choose all or of:", "leat-group"]),
    (["-s", "0"], ["--size"]),
    (["-s", "1TiB"], ["--size"]),
    (["-c", "0"], ["--count"]),
    (["--pattern", "broadcast"], ["--pattern", "pingpong"]),
    (["--busy", "--block"], ["--block", "--busy"]),
    (["--method", "signal", "--busy"], ["none of these methods can spin", "--busy"]),
    (["--method", "shm", "--block"], ["none of these methods can block", "--block"]),
    (["--batch", "8"], ["--pattern oneway"]),
    (["--rate", "10", "--batch", "8"], ["--batch"]),
    (["--rate", "10", "--pattern", "pingpong"], ["--pattern"]),
    (["--compat", "--pattern", "oneway"], ["--compat"]),
    (["--compat", "--json"], ["--compat", "--json=FILE"]),
    (["--sweep", "sizes=1..8"], ["--out DIR"]),
    (["--sweep", "1..8", "--out", "x"], ["sizes=1..64KiB"]),
    (["--runs", "0"], ["--runs"]),
    (["--pin", "4096"], ["4096"]),
])
def test_bad_input_gets_one_line(leat, tmp_path, arguments, words):
    done = subprocess.run([leat.executable, "bench", "ipc", *arguments], env=leat.environment,
                          cwd=tmp_path, capture_output=True, text=True, timeout=60)
    one_line(done, 2, *words)
    assert list(tmp_path.iterdir()) == []
