"""If these tests failed, `leat bench clients` would not run, print inconsistent figures, accept bad options, or stop
because of one program that fails.

Nothing here checks how fast anything is.
"""
import json
import os
import shutil
import signal
import subprocess

import pytest

from conftest import ROOT, run
from test_bench import run_json
from test_cli import one_line, wait_until

SPEED = ROOT / "build" / "clients" / "speed"
ALL = ["cpp", "c", "rust", "python", "go", "java", "ruby", "node", "lua", "luajit"]
PARTS = ["publish", "batch", "read", "view"]
# Those that were built, as for the other tests of clients. The two need only the C library.
CHOSEN = run.chosen()
BUILT = [name for name in ALL if name in (*CHOSEN, "c", "cpp")]
SMALL = ["--records", "6400", "--runs", "1"]


def check_result(result, runs):
    assert result["runtime"] and len(result["runs"]) == runs
    assert {f"{part}_ns" for part in PARTS} <= set(result) and set(result["ratio"]) == set(PARTS)
    for part in PARTS:
        ns, ratio = result[f"{part}_ns"], result["ratio"][part]
        assert ns is None and part == "view" or ns > 0
        assert (ratio is None) == (ns is None or "beside" not in result)
        if ratio is not None and runs == 1:
            beside = result["runs"][0]["beside"]["view_ns" if part == "read" else f"{part}_ns"]
            assert ratio == pytest.approx(ns / beside)


def run_program(leat, language, *arguments):
    return subprocess.run([SPEED / language, *arguments], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, LEAT_DIR=str(leat.directory)), check=False)


@pytest.mark.parametrize("language", BUILT)
def test_measures_each_language(leat, language):
    assert (SPEED / language).exists(), f"the program of {language} was not built"
    report = run_json(leat, "clients", "--language", language, *SMALL)
    assert [result["language"] for result in report["results"]] == [language]
    assert report["failed"] == [] and report["not_built"] == []
    check_result(report["results"][0], 1)
    assert report["parameters"]["records"] == 6400 and report["parameters"]["size"] == 100
    assert report["results"][0].get("beside") == {"cpp": None, "c": "cpp"}.get(language, "c")
    assert list(leat.directory.iterdir()) == []


@pytest.mark.parametrize("language", BUILT)
def test_each_program_works_alone(leat, language):
    leat("topic", "create", "speed", check=True)
    worked = run_program(leat, language, "speed", "100", "6400")
    measured = json.loads(worked.stdout)
    assert worked.returncode == 0
    assert all(measured[f"{part}_ns"] > 0 for part in PARTS if language != "node" or part != "view")
    failed = run_program(leat, language, "nothing", "100", "64")
    assert (failed.returncode, failed.stdout, failed.stderr.count("\n")) == (1, "", 1)


def test_python_is_measured_beside_pyzmq(leat, tmp_path):
    if "python" not in CHOSEN:
        pytest.skip("Python is not among CLIENTS")
    file = tmp_path / "clients.json"
    done = leat("bench", "clients", "--language", "c", *SMALL, "--peers", f"--json={file}", check=True)
    assert "pyzmq" in done.stdout and "Leat, batches of 64" in done.stdout
    peers = json.loads(file.read_text())["peers"]
    assert [peer["how"] for peer in peers] == ["pyzmq", "single", "batch"]
    for peer in peers:
        assert peer["records_per_second"] > 0 and peer["runtime"] and len(peer["runs"]) == 1
    for peer, wanted in zip(peers[1:], (6, 20)):
        assert peer["times_pyzmq"] == pytest.approx(peer["runs"][0] / peers[0]["runs"][0])
        assert peer["target"] == wanted


@pytest.fixture
def programs(tmp_path):
    """A directory with the programs of C and C++; `add` makes one of a shell script."""
    class Programs:
        path = tmp_path / "speed"

        def add(self, name, script):
            file = self.path / name
            file.write_text(f"#!/bin/sh\n{script}\n")
            file.chmod(0o755)

    Programs.path.mkdir()
    for name in ("c", "cpp"):
        (Programs.path / name).symlink_to(SPEED / name)
    return Programs()


def figures(**others):
    return json.dumps({"runtime": "Sh 1", "publish_ns": 40, "batch_ns": 20, "read_ns": 30, "view_ns": None, **others})


def test_what_is_not_built_is_named_and_how_to_build_it(leat, programs):
    programs.add("python", f"echo '{figures()}'")
    report = run_json(leat, "clients", "--programs", programs.path, *SMALL)
    assert [result["language"] for result in report["results"]] == ["cpp", "c", "python"]
    assert [missing["language"] for missing in report["not_built"]] == [
        name for name in ALL if name not in ("cpp", "c", "python")]
    table = leat("bench", "clients", "--programs", programs.path, *SMALL, check=True).stdout
    assert any(line.startswith("Go") and "`make clients`" in line for line in table.splitlines())


def test_a_program_that_is_asked_for_and_not_there_is_named(leat, programs):
    done = leat("bench", "clients", "--programs", programs.path, "--language", "c,go", *SMALL)
    one_line(done, 3, str(programs.path / "go"), "make clients")
    assert done.stdout == ""
    (programs.path / "c").unlink()
    programs.add("go", f"echo '{figures()}'")
    one_line(leat("bench", "clients", "--programs", programs.path, "--language", "go", *SMALL), 3,
             str(programs.path / "c"), "make bench-build")


def test_programs_that_fail_are_named_and_the_others_go_on(leat, programs, tmp_path):
    programs.add("rust", "echo warning >&2; echo 'no ink' >&2; exit 1")
    programs.add("python", "echo hello")
    programs.add("go", f"echo '{figures(batch_ns=0)}'")
    programs.add("java", "sleep 600")
    programs.add("ruby", "kill -SEGV $$")
    programs.add("node", "echo \"$@\" > arguments; " f"echo '{figures()}'")
    file = tmp_path / "clients.json"
    command = ("clients", "--programs", programs.path, "--records", "1000", "--runs", "2", "--time-limit", "10")
    running = leat.start("bench", *command, f"--json={file}", cwd=tmp_path)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 1
    assert err == "leat: failed: rust, python, go, java, ruby\n"
    report = json.loads(file.read_text())
    assert [result["language"] for result in report["results"]] == ["cpp", "c", "node"]
    check_result(report["results"][-1], 2)
    why = {failed["language"]: failed["why"] for failed in report["failed"]}
    assert list(why) == ["rust", "python", "go", "java", "ruby"]
    assert why["rust"].endswith("exit code 1: no ink")
    assert "'hello'" in why["python"] and "batch_ns" in why["go"]
    assert "10 s" in why["java"] and "Segmentation fault" in why["ruby"]
    assert all("\n" not in sentence and sentence in out for sentence in why.values())
    assert (tmp_path / "arguments").read_text() == "clients 100 1024\n"  # Whole batches.


def test_without_c_nothing_is_compared(leat, programs):
    (programs.path / "c").unlink()
    programs.add("c", "echo 'no ink' >&2; exit 1")
    programs.add("node", f"echo '{figures()}'")
    one_line(leat("bench", "clients", "--programs", programs.path, "--language", "node", *SMALL), 1, "c: ", "no ink")


def test_other_sizes_have_no_targets(leat):
    report = run_json(leat, "clients", "--language", "c", "--size", "1000", *SMALL)
    assert "target" not in report["results"][0]
    report = run_json(leat, "clients", "--language", "c", *SMALL)
    assert report["results"][0]["target"] == {"publish": 1.25, "batch": 1.25, "view": 1.6}


@pytest.mark.parametrize("arguments, words", [
    (["--language", "cobol"], ["--language cobol", "python"]),
    (["--language", ""], ["--language"]),
    (["--size", "0"], ["--size"]),
    (["--size", "65537"], ["--size", "65536"]),
    (["--records", "0"], ["--records"]),
    (["--records", "100000001"], ["--records"]),
    (["--runs", "0"], ["--runs"]),
    (["--time-limit", "0"], ["--time-limit"]),
    (["--pin", "4711"], ["--pin 4711"]),
    (["more"], ["more"]),
])
def test_bad_usage_gets_one_line_and_exit_code_2(leat, arguments, words):
    done = leat("bench", "clients", *arguments)
    one_line(done, 2, *words)
    assert done.stdout == ""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_measurement_that_was_stopped(leat, programs, how):
    pid_file = programs.path / "pid"
    programs.add("node", f"sleep 600 & echo $! > {pid_file}; wait")
    running = leat.start("bench", "clients", "--programs", programs.path, "--language", "node", *SMALL)
    wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
    started = int(pid_file.read_text())
    os.killpg(running.pid, how)  # Like Ctrl-C, to the whole process group.
    assert running.wait(timeout=20) == 128 + how
    assert list(leat.directory.iterdir()) == []
    wait_until(lambda: not is_running(started))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_it_finds_programs_beside_itself(leat, tmp_path):
    shutil.copy(leat.executable.parent / "leat-bench", tmp_path)
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients" / "speed").symlink_to(SPEED)
    leat.executable = tmp_path / "leat-bench"
    done = leat("clients", "--language", "c", *SMALL, "--json", check=True)
    assert json.loads(done.stdout)["results"][0]["language"] == "c"
