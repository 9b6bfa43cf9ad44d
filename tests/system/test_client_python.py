"""If this failed, a Python program could crash, hang, or lose records where a C++ program does not."""
import os
import subprocess
import sys

from conftest import EXECUTABLE, ROOT

PYTHON = "/usr/bin/python3"
PACKAGE = ROOT / "build" / "clients" / "python"


def run(*command, directory, path=PACKAGE):
    environment = dict(os.environ, PYTHONPATH=str(path), LEAT_DIR=str(directory))
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280,
                          check=False)


def test_its_own_tests_pass(leat_dir):
    ran = run(PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
              ROOT / "clients/python/tests", directory=leat_dir)
    sys.stdout.write(ran.stdout)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


def test_the_example_talks_to_the_executable(leat_dir):
    ran = run(PYTHON, ROOT / "examples/clients/python.py", directory=leat_dir)
    assert ran.returncode == 0, ran.stderr
    seen = run(EXECUTABLE, "sub", "greetings", "--from", "beginning", "--exit", directory=leat_dir)
    assert "hello from Python" in seen.stdout


def test_the_wheel_installs_into_an_empty_place(leat_dir, tmp_path):
    wheels = list((ROOT / "build" / "clients").glob("leat-*.whl"))
    assert len(wheels) == 1
    python = tmp_path / "venv" / "bin" / "python"
    for command in ([PYTHON, "-m", "venv", tmp_path / "venv"],
                    [python, "-m", "pip", "install", "--no-index", "-q", wheels[0]],
                    [python, ROOT / "examples/clients/python.py"]):
        ran = run(*command, directory=leat_dir, path="")
        assert ran.returncode == 0, ran.stderr
