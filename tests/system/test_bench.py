"""If these tests failed, a command of `leat bench` would not run, print inconsistent figures, accept bad
options, or leave files behind.

Nothing here checks how fast anything is.
"""
import json
import os
import re
import signal
import time

import pytest

from test_cli import one_line, wait_until

COST = {"records_per_second", "ns_per_record", "publisher_cpu_ns_per_record",
        "publisher_wait_ns_per_record", "subscriber_cpu_ns_per_record"}
LATENCY = {"round_trip_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"}


def run_json(leat, *arguments):
    """The report on stdout. Checks its head, and that nothing is left behind."""
    done = leat("bench", *arguments, "--json", check=True, timeout=240)
    report = json.loads(done.stdout)
    for field in ("machine", "version", "commit", "date", "parameters"):
        assert report[field], field
    assert {"cpu", "kernel", "cpus_online"} <= set(report["machine"])
    assert [path.name for path in leat.directory.iterdir()] == []
    return report


def check_costs(report, runs):
    """Checks that runs, median, floor and ratio are consistent."""
    assert len(report["runs"]) == runs
    for run in [*report["runs"], report["median"]]:
        assert set(run) == COST
        assert all(value >= 0 for value in run.values())
        assert run["ns_per_record"] > 0
        # For the median this holds only with an odd number of runs.
        assert run["records_per_second"] == pytest.approx(1e9 / run["ns_per_record"])
    assert report["floor"] > 0 and report["floor_in_place"] > 0
    assert report["ratio"] == pytest.approx(report["median"]["ns_per_record"] / report["floor"])


@pytest.mark.parametrize("mode", ["exclusive", "shared"])
@pytest.mark.parametrize("batch", ["1", "16"])
def test_log_reports_what_a_record_costs(leat, mode, batch):
    report = run_json(leat, "log", "--size", "32", "--records", "5000", "--runs", "3", "--mode", mode,
                      "--batch", batch, "--verify", "full")
    check_costs(report, 3)
    assert "ratio_to_one" not in report
    parameters = report["parameters"]
    assert parameters["size"] == 32 and parameters["records"] == 5000 and parameters["runs"] == 3
    assert parameters["mode"] == mode and parameters["batch"] == int(batch)
    assert parameters["publishers"] == 1 and parameters["subscribers"] == 1
    assert parameters["verify"] == "full" and parameters["pin"]


def test_log_compares_several_publishers_with_one(leat):
    report = run_json(leat, "log", "--size", "100", "--records", "5000", "--runs", "1",
                      "--publishers", "2", "--mode", "shared")
    check_costs(report, 1)
    assert set(report["one"]) == COST
    assert report["ratio_to_one"] == pytest.approx(
        report["median"]["ns_per_record"] / report["one"]["ns_per_record"])


def test_log_compares_several_subscribers_with_one_at_a_rate(leat):
    report = run_json(leat, "log", "--size", "100", "--records", "2000", "--runs", "1",
                      "--subscribers", "3", "--rate", "100000")
    check_costs(report, 1)
    assert report["parameters"]["rate"] == 100000
    assert report["median"]["records_per_second"] <= 100000
    assert report["publisher_cpu_ratio_to_one"] > 0
    assert "ratio_to_one" not in report


def test_log_takes_another_capacity(leat):
    report = run_json(leat, "log", "--size", "1024", "--records", "5000", "--runs", "1", "--capacity", "1MiB")
    check_costs(report, 1)
    assert report["parameters"]["capacity_bytes"] == 1 << 20
    assert report["cpus"] in ("near", "far") and report["cache_line_round_trip_ns"][0] > 0


def test_log_without_a_choice_is_a_table_of_the_usual_cases(leat, tmp_path):
    file = tmp_path / "log.json"
    done = leat("bench", "log", "--records", "1000", "--runs", "1", f"--json={file}", check=True,
                timeout=240)
    assert "target" in done.stdout and "exclusive, 1 to 1, batches of 16" in done.stdout
    cases = json.loads(file.read_text())["cases"]
    assert [(c["parameters"]["size"], c["parameters"]["mode"], c["parameters"]["batch"],
             c["parameters"]["publishers"]) for c in cases] == [
        (size, *rest) for size in (8, 32, 100, 1024)
        for rest in (("exclusive", 1, 1), ("exclusive", 16, 1), ("shared", 1, 1), ("shared", 1, 2))]
    for case in cases:
        check_costs(case, 1)
        assert ("ratio_to_one" in case) == (case["parameters"]["publishers"] == 2)


def check_latency(report, runs):
    assert len(report["runs"]) == runs
    for run in report["runs"]:
        assert set(run) == LATENCY
        figures = [run[name] for name in ("p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns")]
        known = [figure for figure in figures if figure is not None]
        assert 0 < known[0] and known == sorted(known)
        # The p99.9 of fewer than 1000 samples would be the slowest of them.
        count = report["parameters"]["count"]
        assert [run["p99_ns"] is None, run["p999_ns"] is None] == [count < 100, count < 1000]
    assert set(report["median"]) == LATENCY
    assert report["ratio"] == pytest.approx(report["median"]["round_trip_ns"] / report["floor"])


def test_latency_reports_the_round_trip_and_its_percentiles(leat):
    report = run_json(leat, "latency", "--size", "100", "--count", "500", "--runs", "2",
                      "--verify", "full")
    check_latency(report, 2)
    assert report["parameters"]["size"] == 100 and report["parameters"]["count"] == 500


def test_latency_of_sleepers(leat):
    report = run_json(leat, "latency", "--size", "8", "--count", "100", "--runs", "1", "--block")
    check_latency(report, 1)
    assert report["parameters"]["floor"] == "futex"


def test_latency_without_a_size_is_a_table(leat):
    done = leat("bench", "latency", "--count", "200", "--runs", "1", check=True)
    head, row = (line for line in done.stdout.splitlines() if line.split()[:1] in (["bytes"], ["8"]))
    assert "target" in head and row.split()[head.replace("round trip", "round").split().index("p99.9")] == "-"
    report = run_json(leat, "latency", "--count", "200", "--runs", "1")
    assert [case["parameters"]["size"] for case in report["cases"]] == [8, 100, 1024]
    for case in report["cases"]:
        check_latency(case, 1)


def test_crash_reports_both_times_of_every_kill(leat):
    report = run_json(leat, "crash", "--kills", "2", "--resident-mib", "1")
    names = {"subscriber_asleep", "subscriber_polling", "another_publisher", "publisher_waiting"}
    assert len(report["runs"]) == 2
    for times in [*report["runs"], report["median"], report["p90"], report["max"]]:
        assert set(times) == names
        for name in names:
            assert set(times[name]) == {"kill_to_release_us", "release_to_progress_us"}
            assert times[name]["kill_to_release_us"] > 0
            assert times[name]["release_to_progress_us"] >= 0
    assert "publication" in leat("bench", "crash", "--kills", "1", check=True).stdout


def test_idle_reports_the_cpu_time_of_waiting_subscribers(leat):
    report = run_json(leat, "idle", "--subscribers", "3", "--seconds", "0.2", "--runs", "2")
    assert [run["cpu_ms"] >= 0 for run in report["runs"]] == [True, True]
    assert report["parameters"]["subscribers"] == 3
    table = leat("bench", "idle", "--subscribers", "1", "--seconds", "0.1", check=True).stdout
    assert table.startswith("1 waiting subscribers used ")


def check_kernel_channels(report, stream_sizes, round_trip_sizes):
    """Checks pipe and Unix socket in every run and in the median."""
    for run in [*report["runs"], report["median"]]:
        for channel in ("pipe", "unix_socket"):
            assert set(run[channel]) == stream_sizes
            for stream in run[channel].values():
                assert set(stream) == {"ns_per_record"} and stream["ns_per_record"] > 0
            assert set(run[f"{channel}_round_trip"]) == round_trip_sizes
            for trip in run[f"{channel}_round_trip"].values():
                assert set(trip) == LATENCY and trip["round_trip_ns"] > 0
                assert 0 < trip["p50_ns"] <= trip["p999_ns"] <= trip["max_ns"]


def test_limits_reports_the_floors(leat):
    report = run_json(leat, "limits", "--runs", "1", "--sync-dir", str(leat.directory))
    assert set(report["median"]["ring"]) == {"8", "32", "100", "1024"}
    assert set(report["median"]["slot_round_trip_read_only"]) == {"8", "100", "1024"}
    assert set(report["median"]["slot_round_trip"]) == {"8", "100", "1024"}
    check_kernel_channels(report, stream_sizes={"8", "32", "100", "1024"},
                          round_trip_sizes={"8", "100", "1024"})
    for field in ("cache_line_round_trip_ns", "system_call_ns", "futex_round_trip_ns",
                  "first_touch_ns_per_page", "fdatasync_ns", "copy_in_cache_gb_per_s"):
        assert report["median"][field] > 0, field


def test_limits_sends_any_size_through_the_kernel(leat, tmp_path):
    """Messages that do not divide a read evenly, that are larger than a read or a pipe, and empty ones,
    which streams cannot transfer. All of them appear in the table as well."""
    file = tmp_path / "limits.json"
    table = leat("bench", "limits", "--runs", "1", "--sync-dir", leat.directory,
                 "--size", "0,7,4097,300001", f"--json={file}", check=True, timeout=240).stdout
    report = json.loads(file.read_text())
    assert {"0", "7", "4097", "300001"} <= set(report["median"]["slot_round_trip"])
    sizes = {"8", "100", "1024", "7", "4097", "300001"}
    check_kernel_channels(report, stream_sizes={*sizes, "32"}, round_trip_sizes=sizes)

    names = {line[:38].rstrip() for line in table.splitlines()}
    for channel in ("pipe", "Unix socket"):
        assert {f"{channel}, {size} B" for size in (*sizes, "32")} <= names
        assert {f"{channel}, {size} B, round trip" for size in sizes} <= names


def test_log_measures_durable_topics_beside_their_floors(leat, tmp_path):
    file = tmp_path / "durable.json"
    done = leat("bench", "log", "--durable", "os", "--data-dir", "/var/tmp", "--records", "2000",
                "--runs", "2", f"--json={file}", check=True, timeout=240)
    assert "exclusive, 1 publisher, batches of 16" in done.stdout and "target" in done.stdout
    report = json.loads(file.read_text())
    assert report["parameters"]["durable"] == "os"
    cases = report["cases"]
    assert [c["scenario"] for c in cases] == ["log"] * 10 + ["publish", "replay", "recovery", "open"]
    for case in cases:
        assert len(case["runs"]) == 2
        assert all(value >= 0 for run in case["runs"] for value in run.values())
        assert case["median"]["ratio"] > 0
    # One file for each large record, and the one in use.
    assert cases[-1]["parameters"]["files"] >= 1000


@pytest.mark.parametrize("level,scenarios", [
    ("fsync", ["log"] * 10 + ["sqlite"]), ("interval:20ms", ["log"] * 8 + ["publish", "sqlite"])])
def test_log_measures_every_durability_and_sqlite(leat, level, scenarios):
    report = run_json(leat, "log", "--durable", level, "--data-dir", "/var/tmp", "--records", "2000",
                      "--runs", "1", "--peers")
    assert [c["scenario"] for c in report["cases"]] == scenarios
    name, _, interval = level.partition(":")
    for case in report["cases"]:
        assert case["parameters"]["durability"] == name
        assert case["parameters"]["sync_interval_ns"] == (20_000_000 if interval else 0)
        assert case["median"]["ratio"] > 0
    assert report["cases"][-1]["median"]["sqlite_records_per_second"] > 0


def test_log_waits_for_the_disk_behind_so_many_records(leat):
    [case] = run_json(leat, "log", "--durable", "os", "--data-dir", "/var/tmp", "--size", "200",
                      "--records", "1000", "--runs", "1", "--in-flight", "100")["cases"]
    assert case["parameters"]["in_flight"] == 100
    assert case["median"]["records_per_second"] > 0


def test_log_of_a_durable_topic_measures_one_case(leat):
    report = run_json(leat, "log", "--durable", "os", "--data-dir", "/var/tmp", "--size", "200",
                      "--records", "5000", "--runs", "2", "--publishers", "2", "--mode", "shared",
                      "--verify", "full")
    [case] = report["cases"]
    assert case["parameters"]["publishers"] == 2 and case["parameters"]["size"] == 200
    assert case["median"]["records_per_second"] > 0


@pytest.mark.parametrize("arguments", [
    ["log", "--size", "-1"],
    ["log", "--size", "524273"],
    ["log", "--size", "many"],
    ["log", "--mode", "fast"],
    ["log", "--mode", "exclusive", "--publishers", "2"],
    ["log", "--publishers", "0"],
    ["log", "--publishers", "2", "--size", "4"],
    ["log", "--size", "100000", "--batch", "16"],
    ["log", "--rate", "0"],
    ["log", "--runs", "0"],
    ["log", "--pin", "4711"],
    ["log", "--verify", "nothing"],
    ["log", "--durable", "always"],
    ["log", "--durable", "interval:1us"],
    ["log", "--durable", "fsync", "--in-flight", "8", "--batch", "8"],
    ["log", "--in-flight", "8"],
    ["log", "--peers"],
    ["log", "--durable", "os", "--data-dir", "/dev/shm"],
    ["log", "--durable", "os", "--subscribers", "2"],
    ["log", "--durable", "os", "--records", "1000000000"],
    ["log", "--data-dir", "/var/tmp"],
    ["latency", "--size", "99999999"],
    ["latency", "--count", "0"],
    ["crash", "--kills", "0"],
    ["idle", "--subscribers", "0"],
    ["idle", "--seconds", "-1"],
    ["limits", "--size", "x"],
    ["nothing"],
    [],
])
def test_bad_usage_gets_one_line_and_exit_code_2(leat, arguments):
    done = leat("bench", *arguments)
    one_line(done, 2)
    assert done.stdout == ""


UNITS = {"BYTES": "bytes", "SECONDS": "seconds", "MIB": "MiB", "PER_SECOND": "per second",
         "N": "messages|records|processes|kills|connections|round trips|keys|how often"}


@pytest.mark.parametrize("command", ["ipc", "report", "limits", "log", "group", "broker", "latency",
                                     "clients", "crash", "idle"])
def test_help_says_the_unit_of_every_number(leat, command):
    text = leat("bench", command, "--help", check=True).stdout
    options = re.findall(r"^  (-\S+) (\S+).*?(?:  |\n) *(.*(?:\n {30}.*)*)", text, re.M)
    numbers = {option: (re.split(r"[|,]", what)[-1].rstrip("."), " ".join(words.split()))
               for option, what, words in options}
    checked = 0
    for option, (what, words) in numbers.items():
        if what in UNITS:
            assert re.search(UNITS[what], words, re.I), f"{option}: {words}"
            checked += 1
    assert checked >= 1, text


def test_a_file_that_cannot_be_written_is_noticed_before_measuring(leat, tmp_path):
    done = leat("bench", "latency", f"--json={tmp_path}/missing/report.json", timeout=5)
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1 and "report.json" in done.stderr


@pytest.mark.parametrize("arguments", [["log", "--size", "8", "--records", "1000", "--runs", "1"],
                                       ["latency", "--size", "8", "--count", "200", "--runs", "1"],
                                       ["crash", "--kills", "1"],
                                       ["idle", "--subscribers", "1", "--seconds", "0.1"]])
def test_a_missing_directory_is_made(leat, tmp_path, arguments):
    leat.environment["LEAT_DIR"] = str(tmp_path / "missing")
    leat("bench", *arguments, check=True)
    assert list((tmp_path / "missing").iterdir()) == []


@pytest.mark.parametrize("command", ["log", "latency", "crash", "idle"])
def test_a_directory_that_cannot_be_made_is_named_before_anything_is_printed(leat, tmp_path, command):
    leat.environment["LEAT_DIR"] = str(tmp_path / "missing" / "as well")
    done = leat("bench", command)
    one_line(done, 3, str(tmp_path / "missing"), "LEAT_DIR")
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["log", "latency", "group", "ipc", "crash", "idle"])
@pytest.mark.parametrize("place", ["/", "/proc"])
def test_a_directory_of_the_system_is_refused_before_anything_is_printed(leat, command, place):
    done = leat("bench", command, "--dir", place)
    one_line(done, 4, f"{place} is refused", "--dir")
    assert done.stdout == ""


def test_a_measurement_that_was_killed_leaves_what_doctor_removes(leat):
    running = leat.start("bench", "idle", "--subscribers", "2", "--seconds", "60")
    wait_until(lambda: list(leat.directory.glob("+bench-*/idle")))
    assert leat("doctor", "--clean", check=True).stdout.count("removed") == 0
    left, = [path.name for path in leat.directory.iterdir()]
    assert leat("topic", "list", check=True).stdout == ""  # It is not listed as a topic.
    running.kill()
    running.wait()
    wait_until(lambda: left in leat("doctor", check=True).stdout)  # After its children have died.
    assert f"removed  {left} (of a measurement that was killed" in leat(
        "doctor", "--clean", check=True).stdout
    assert list(leat.directory.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_measurement_that_was_stopped(leat, how):
    running = leat.start("bench", "idle", "--seconds", "60")
    deadline = time.monotonic() + 20
    while not any(leat.directory.glob("+bench-*/idle")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(running.pid, how)  # Like Ctrl-C, to the whole process group.
    assert running.wait(timeout=20) == 128 + how
    assert list(leat.directory.iterdir()) == []
    assert len(running.stderr.read().splitlines()) == 1
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)
