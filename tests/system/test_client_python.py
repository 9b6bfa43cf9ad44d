"""If this failed, a Python program could crash, hang, or lose records where a C++ program does not."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PYTHON = "/usr/bin/python3"
PACKAGE = ROOT / "build" / "clients" / "python"
# Further versions: on the PATH, or where pyenv keeps them.
NEWER = {}
for place in [*os.get_exec_path(), *(Path.home() / ".pyenv" / "versions").glob("*/bin")]:
    for found in Path(place).glob("python3.*"):
        version = re.fullmatch(r"python3\.(\d+)", found.name)
        if version and int(version[1]) > 11 and "shims" not in found.parts:
            NEWER.setdefault(found.name, found)
# What these tests need of Debian's pytest is not compiled, so that every Python can import it.
PYTEST = ["pytest", "_pytest", "pluggy", "iniconfig", "packaging", "attr", "py", "py.py"]


def run(*command, directory, path=PACKAGE):
    environment = dict(os.environ, PYTHONPATH=str(path), LEAT_DIR=str(directory))
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280,
                          check=False)


def test_its_own_tests_pass(leat_dir):
    ran = run(PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
              ROOT / "clients/python/tests", directory=leat_dir)
    sys.stdout.write(ran.stdout)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


def test_the_readme_of_leat_shows_it(leat_dir):
    block = re.search(r"```python\n(import leat\n.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)[1]
    ran = run(PYTHON, "-c", block, directory=leat_dir)
    assert (ran.stdout, ran.stderr) == ("b'hello'\n", "")


def test_the_wheel_installs_into_an_empty_place(leat, tmp_path):
    """Without network: the example runs with nothing but it and Python."""
    wheels = list((ROOT / "build" / "clients").glob("leat-*.whl"))
    assert len(wheels) == 1 and "-cp311-abi3-linux_" in wheels[0].name
    python = tmp_path / "venv" / "bin" / "python"
    for command in ([PYTHON, "-m", "venv", tmp_path / "venv"],
                    [python, "-m", "pip", "install", "--no-index", "-q", wheels[0]],
                    [python, ROOT / "examples/clients/python.py"]):
        ran = run(*command, directory=leat.directory, path="")
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout == "hello from Python\n"
    assert leat("sub", "greetings", "--from", "beginning", "--exit").stdout == "hello from Python\n"


@pytest.mark.parametrize("version", sorted(NEWER) or ["none"])
def test_the_wheel_works_with_newer_versions(version, leat_dir, tmp_path):
    if version not in NEWER:
        pytest.skip("no Python newer than 3.11 on the PATH or below ~/.pyenv")
    python = NEWER[version]
    wheel, = (ROOT / "build" / "clients").glob("leat-*.whl")
    for name in PYTEST:
        (tmp_path / name).symlink_to(Path("/usr/lib/python3/dist-packages") / name)
    tests = [ROOT / "clients/python/tests" / f"test_{of}.py"
             for of in ("topics", "groups", "misuse", "asyncio")]
    for command in ([python, "-m", "pip", "install", "-q", "--no-index", "--target", tmp_path, wheel],
                    [python, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]):
        ran = run(*command, directory=leat_dir, path=tmp_path)
        assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
