"""If these tests failed, `leat bench group` would not run, print inconsistent figures, accept bad options,
or leave files or queues behind.

Nothing here checks how fast anything is.
"""
import json
import os
import resource
import signal
from pathlib import Path

import pytest

from test_bench import run_json
from test_cli import one_line, wait_until

COST = {"records_per_second", "ns_per_record", "publisher_cpu_ns_per_record",
        "publisher_wait_ns_per_record", "member_cpu_ns_per_record"}
PEERS = ("boost-mq", "mq-posix")


def check_costs(results, runs):
    assert len(results["runs"]) == runs
    for run in [*results["runs"], results["median"]]:
        assert set(run) == COST
        assert all(value >= 0 for value in run.values())
        assert run["ns_per_record"] > 0


def check_case(results, runs, peers=PEERS):
    """Checks that runs, median, floor and the other queues' results are consistent."""
    check_costs(results, runs)
    ns = results["median"]["ns_per_record"]
    assert results["ratio"] == pytest.approx(ns / results["floor"])
    assert tuple(peer["name"] for peer in results.get("peers", [])) == peers
    for peer in results.get("peers", []):
        check_costs(peer, runs)
        assert peer["depth"] >= 1
        key = "times_" + peer["name"].replace("-", "_")
        assert results[key] == pytest.approx(peer["median"]["ns_per_record"] / ns)


def left_in_shared_memory(process_id):
    return list(Path("/dev/shm").glob(f"leat-bench-{process_id}-*"))


@pytest.mark.parametrize("batch", ["auto", "1", "16"])
def test_reports_what_a_record_costs_beside_other_queues(leat, batch):
    report = run_json(leat, "group", "--size", "100", "--records", "3000", "--runs", "3",
                      "--publishers", "2", "--members", "3", "--batch", batch, "--verify", "full",
                      "--peers")
    check_case(report, 3)
    parameters = report["parameters"]
    assert parameters["size"] == 100 and parameters["records"] == 3000 and parameters["runs"] == 3
    assert parameters["publishers"] == 2 and parameters["members"] == 3
    assert parameters["mode"] == "shared" and parameters["verify"] == "full"
    assert parameters["batch"] == ("auto" if batch == "auto" else int(batch))
    assert [peer["records"] for peer in report["peers"]] == [3000, 3000]
    assert report["peers"][0]["depth"] == 1024


def test_measures_other_queues_only_if_asked(leat):
    report = run_json(leat, "group", "--size", "8", "--records", "1000", "--runs", "1", "--mode",
                      "exclusive")
    check_case(report, 1, peers=())
    assert report["parameters"]["mode"] == "exclusive" and "notes" not in report


def test_without_a_choice_is_a_table_of_the_usual_cases(leat, tmp_path):
    file = tmp_path / "group.json"
    done = leat("bench", "group", "--records", "1000", "--runs", "1", "--peers", f"--json={file}",
                check=True, timeout=240)
    assert "target" in done.stdout and "shared, 4 to 4, 1 at a time" in done.stdout
    report = json.loads(file.read_text())
    cases = [(case["parameters"]["size"], case["parameters"]["publishers"],
              case["parameters"]["members"], case["parameters"]["batch"])
             for case in report["cases"]]
    assert cases == [*((size, crowd, crowd, "auto") for size in (8, 100, 1024)
                       for crowd in (1, 2, 4)), (8, 1, 1, 1), (100, 4, 4, 1),
                     (8, 1, 1, 1), (8, 4, 4, 1)]
    assert [case["parameters"]["instance"] for case in report["cases"]] == [
        *["own"] * 11, *["shared"] * 2]
    for case in report["cases"]:
        check_case(case, 1)
    assert report["cases"][0]["target"] == {"times_boost_mq": 4, "records_per_second": 20e6}
    beside = report["group_beside_subscriber"]
    costs = beside["median"]["publisher_cpu_ns_per_record"]
    assert beside["ratio"] == pytest.approx(costs["with_group"] / costs["without_group"])


def test_compares_one_instance_for_all_threads_with_one_for_each(leat):
    report = run_json(leat, "group", "--instance", "shared", "--size", "8", "--records", "2000",
                      "--runs", "3", "--publishers", "2", "--members", "2")
    check_case(report, 3, peers=())
    own = report["own_instances"]
    check_costs(own, 3)
    assert report["ratio_to_own"] == pytest.approx(
        report["median"]["ns_per_record"] / own["median"]["ns_per_record"])
    assert report["parameters"]["instance"] == "shared" and report["parameters"]["blocks"] > 0
    assert report["target"] == {"ratio_to_own": 1.3}


def test_a_queue_that_the_machine_refuses_is_named_and_the_rest_measured(leat):
    def no_message_queues():
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))

    running = leat.start("bench", "group", "--size", "8", "--records", "1000", "--runs", "1",
                         "--peers", "--json", preexec_fn=no_message_queues)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    report = json.loads(out)
    check_case(report, 1, peers=("boost-mq",))
    assert len(report["notes"]) == 1 and "mq-posix" in report["notes"][0]


@pytest.mark.parametrize("arguments, words", [
    (["--members", "0"], ["--members"]),
    (["--members", "65"], ["--members", "64"]),
    (["--publishers", "many"], ["--publishers"]),
    (["--publishers", "2", "--mode", "exclusive"], ["--publishers 1", "--mode shared"]),
    (["--mode", "fast"], ["--mode"]),
    (["--size", "7"], ["--size", "8"]),
    (["--size", "65537"], ["--size", "65536"]),
    (["--records", "0"], ["--records"]),
    (["--records", "100000001"], ["--records"]),
    (["--runs", "0"], ["--runs"]),
    (["--batch", "0"], ["--batch 0", "auto", "1024"]),
    (["--batch", "1025"], ["--batch 1025", "auto", "1024"]),
    (["--batch", "7x"], ["--batch 7x", "auto"]),
    (["--instance", "none"], ["--instance"]),
    (["--instance", "shared", "--batch", "2"], ["--instance shared", "--batch"]),
    (["--instance", "shared", "--mode", "exclusive"], ["--instance shared", "--mode"]),
    (["--verify", "nothing"], ["--verify"]),
    (["--pin", "4711"], ["--pin 4711"]),
    (["more"], ["more"]),
])
def test_bad_usage_gets_one_line_and_exit_code_2(leat, arguments, words):
    done = leat("bench", "group", *arguments)
    one_line(done, 2, *words)
    assert done.stdout == ""


def test_a_directory_that_cannot_be_made_is_named_before_anything_is_printed(leat, tmp_path):
    leat.environment["LEAT_DIR"] = str(tmp_path / "missing" / "as well")
    done = leat("bench", "group")
    one_line(done, 3, str(tmp_path / "missing"), "LEAT_DIR")
    assert done.stdout == ""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_measurement_that_was_stopped(leat, how):
    running = leat.start("bench", "group", "--size", "8", "--records", "50000000", "--runs", "1000",
                         "--peers")
    wait_until(lambda: list(leat.directory.glob("+bench-*/log")))
    os.killpg(running.pid, how)  # Like Ctrl-C, to the whole process group.
    assert running.wait(timeout=20) == 128 + how
    assert list(leat.directory.iterdir()) == []
    assert left_in_shared_memory(running.pid) == []
    assert len(running.stderr.read().splitlines()) == 1
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)


def test_a_queue_of_others_has_no_name_while_it_is_used(leat):
    """So the queue cannot be left behind, not even by a kill."""
    running = leat.start("bench", "group", "--size", "8", "--records", "3000000", "--runs", "1",
                         "--peers", "--members", "2", "--publishers", "2")
    wait_until(lambda: list(leat.directory.glob("+bench-*/log")))
    # Wait until the measurement of the group is done.
    wait_until(lambda: not list(leat.directory.glob("+bench-*")), seconds=120)
    assert left_in_shared_memory(running.pid) == []
    running.kill()
    running.wait()
    assert left_in_shared_memory(running.pid) == []
