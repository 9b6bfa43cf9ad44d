"""If these tests failed, `leat bench broker` would not run, print inconsistent figures, accept bad options, or
leave a broker or its files behind.

Nothing here checks how fast anything is.
"""
import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from test_bench import run_json
from test_cli import one_line, wait_until

COST = {"messages_per_second", "ns_per_message", "producer_cpu_ns_per_message",
        "consumer_cpu_ns_per_message", "middle_cpu_ns_per_message"}
LATENCY = {"p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"}


def brokers_of(process_id):
    """Processes named leat-serve whose parent is this one."""
    return [path for path in Path("/proc").glob("[0-9]*/stat")
            if "(leat-serve) " in (text := read(path)) and f" {process_id} " in text[:60]]


def read(path):
    try:
        return path.read_text()
    except OSError:  # It has ended.
        return ""


def check_figures(results, runs, fields):
    assert len(results["runs"]) == runs
    for run in [*results["runs"], results["median"]]:
        assert set(run) == fields
        assert all(value >= 0 for value in run.values())


def check_case(results, runs, peers=("direct", "stand_in")):
    check_figures(results, runs, COST)
    assert results["median"]["middle_cpu_ns_per_message"] > 0
    assert tuple(peer["name"] for peer in results["peers"]) == peers
    for peer in results["peers"]:
        check_figures(peer, runs, COST)
        is_alone = peer["name"] == "direct"
        assert (peer["median"]["middle_cpu_ns_per_message"] == 0) == is_alone
        name = ("times_" if peer["name"] == "stand_in" else "of_") + peer["name"]
        assert results[name] == pytest.approx(results["median"]["messages_per_second"] /
                                              peer["median"]["messages_per_second"])


def test_reports_what_a_message_costs_beside_zeromq_alone(leat):
    report = run_json(leat, "broker", "--messages", "2000", "--runs", "3", "--producers", "2",
                      "--consumers", "3", "--size", "64")
    check_case(report, 3)
    assert report["parameters"].items() >= {
        "framing": "zmq", "type": "queue", "size": 64, "messages": 2000, "producers": 2,
        "consumers": 3, "rate": 0, "runs": 3}.items()


def test_topics_on_disk_are_compared_with_those_in_memory(leat):
    before = set(Path("/var/tmp").iterdir())
    report = run_json(leat, "broker", "--type", "file", "--messages", "1000", "--runs", "1")
    check_case(report, 1, peers=("direct", "stand_in", "queue"))
    assert report["target"] == {"of_queue": 0.6}
    assert set(Path("/var/tmp").iterdir()) <= before


@pytest.mark.parametrize("framing, clients, peers", [
    ("zmq-to-socket", ["--producers", "2"], ("direct", "stand_in")), ("socket", [], ("relay",)),
    ("socket", ["--producers", "2", "--consumers", "2"], ())])
def test_clients_without_zeromq_are_measured_too(leat, framing, clients, peers):
    report = run_json(leat, "broker", "--framing", framing, "--messages", "2000", "--runs", "1",
                      "--size", "32", *clients)
    check_figures(report, 1, COST)
    assert tuple(peer["name"] for peer in report.get("peers", [])) == peers


def test_rate_reports_how_late_messages_are(leat):
    report = run_json(leat, "broker", "--rate", "1000", "--messages", "200", "--runs", "1")
    check_figures(report, 1, LATENCY)
    for peer in report["peers"]:
        check_figures(peer, 1, LATENCY)
        for part in "p50", "p99":
            assert report[f"{part}_times_{peer['name']}"] == pytest.approx(
                report["median"][f"{part}_ns"] / peer["median"][f"{part}_ns"])


def test_without_a_choice_is_a_table_of_the_usual_cases(leat, tmp_path):
    file = tmp_path / "broker.json"
    done = leat("bench", "broker", "--messages", "200", "--runs", "1", f"--json={file}", check=True,
                timeout=240)
    assert "zmq, queue, 2 to 4" in done.stdout and "(1.5)" in done.stdout
    cases = json.loads(file.read_text())["cases"]
    named = [tuple(case["parameters"][name] for name in ("framing", "type", "size", "rate"))
             for case in cases]
    assert named == [
        *((framing, "queue", size, 0) for framing in ("zmq", "zmq-to-socket", "socket")
          for size in (100, 1024)),
        *((framing, "file", size, 0) for framing in ("zmq", "socket") for size in (100, 1024)),
        ("zmq", "queue", 100, 0), ("zmq", "queue", 100, 100_000), ("zmq", "queue", 100, 50)]
    assert cases[0]["target"] == {"times_stand_in": 1.5, "of_direct": 0.57}


def test_tables_of_lightq_stand_beside_what_it_published(leat, tmp_path):
    file = tmp_path / "lightq.json"
    done = leat("bench", "broker", "--lightq-tables", "--messages", "500", "--runs", "2",
                f"--json={file}", check=True, timeout=240)
    assert "500 messages" in done.stdout and "MacBook" in done.stdout and "1181227" in done.stdout
    report = json.loads(file.read_text())
    assert report["lightq"]["messages"] == 10_000_000
    assert [(case["parameters"]["type"], case["parameters"]["size"]) for case in report["cases"]] == [
        (kind, size) for kind in ("queue", "file") for size in (100, 256, 512, 1024)]
    for case in report["cases"]:
        assert len(case["runs"]) == 2
        for messages, figures in (10_000_000, case["lightq"]), *((500, run) for run in case["runs"]):
            assert figures["first_message_ms"] > 0
            for side in figures["producer"], figures["consumer"]:
                rate = side["messages_per_second"]
                assert rate * side["seconds"] == pytest.approx(messages, rel=1e-4)
                assert side["mib_per_second"] == pytest.approx(
                    rate * case["parameters"]["size"] / (1 << 20))


def test_disturbed_compares_two_moments_of_one_run(leat, tmp_path):
    file = tmp_path / "disturbed.json"
    done = subprocess.run(
        ["prlimit", "--nofile=1020:1020", leat.executable, "bench", "broker", "--disturbed",
         "--seconds", "0.2", "--idle", "30", "--runs", "1", f"--json={file}"],
        env=leat.environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    *stopped, crowd = json.loads(file.read_text())["cases"]
    assert [(case["parameters"]["consumers"], case["parameters"]["slow_subscribers"])
            for case in stopped] == [(role, slow) for role in ("pull", "sub")
                                     for slow in ("overtaken", "disconnect")]
    for case in stopped:
        run = case["runs"][0]
        assert run["before_per_second"] > 0 and run["stopped_per_second"] > 0
        assert run["of_before"] == pytest.approx(
            run["stopped_per_second"] / run["before_per_second"])
        assert run["lost"] == 0 and case["target"] == {"of_before": 0.95}
    run = crowd["runs"][0]
    for part in "wrong_logins", "idle":
        beside = run[f"beside_{part}"]
        assert set(beside) == LATENCY and 0 < beside["p50_ns"] <= beside["p99_ns"]
        assert run[f"p99_times_alone_{part}"] == pytest.approx(
            beside["p99_ns"] / run["alone"]["p99_ns"])
        assert crowd["target"][f"p99_times_alone_{part}"] == 2
    assert run["wrong_logins_per_second"] >= 0
    assert 0 < run["idle_memory"]["own_bytes"] and 0 < run["memory"]["own_bytes"]
    assert run["idle_connections"] == 20, "1000 descriptors are for others"
    assert "did not allow 30 idle connections" in done.stdout and "beside 20 idle" in done.stdout
    assert list(leat.directory.iterdir()) == []


def test_interruption_ends_the_broker_and_removes_everything(leat):
    running = leat.start("bench", "broker", "--messages", "100000000")
    wait_until(lambda: brokers_of(running.pid))
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=20) != 0
    assert not brokers_of(running.pid)
    assert list(leat.directory.iterdir()) == []


def test_without_a_broker_it_says_how_to_get_one(leat, tmp_path):
    alone = tmp_path / "leat-bench"
    shutil.copy(leat.executable.parent / "leat-bench", alone)
    done = subprocess.run([alone, "broker", "--runs", "1", "--json"], env=leat.environment,
                          capture_output=True, text=True, timeout=60)
    one_line(done, 1, "leat-serve", "make serve")


@pytest.mark.parametrize("arguments, words", [
    (["--type", "direct"], ["--type"]),
    (["--framing", "http"], ["--framing"]),
    (["--size", "7"], ["--size", "8"]),
    (["--producers", "0"], ["--producers"]),
    (["--consumers", "65"], ["--consumers", "64"]),
    (["--messages", "0"], ["--messages"]),
    (["--rate", "many"], ["--rate"]),
    (["--rate", "1000", "--consumers", "2"], ["--rate", "one"]),
    (["--pin", "4711"], ["--pin 4711"]),
    (["--lightq-tables", "--disturbed"], ["two tables"]),
    (["--lightq-tables", "--type", "file"], ["--lightq-tables", "types"]),
    (["--lightq-tables", "--messages", "1"], ["two messages"]),
    (["--disturbed", "--messages", "9"], ["--messages", "--disturbed"]),
    (["--disturbed", "--idle", "0"], ["--idle"]),
    (["--seconds", "1"], ["--seconds", "--disturbed"]),
    (["more"], ["more"]),
])
def test_bad_usage_gets_one_line_and_exit_code_2(leat, arguments, words):
    done = leat("bench", "broker", *arguments)
    one_line(done, 2, *words)
    assert done.stdout == ""
