"""If this failed, a machine without a language would seem to have tested its client, or CLIENTS would choose in silence."""
import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, run

TOOLS = {"go": "go", "java": "javac", "node": "node", "rust": "cargo"}


@pytest.mark.parametrize("language", sorted(set(TOOLS) & set(run.chosen())))
def test_a_missing_toolchain_is_a_failure(language, tmp_path):
    """In a copy, since building replaces what other tests use, with all programs of the PATH but one."""
    for name in ("clients", "tools", "CMakeLists.txt", "LICENSE"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / "build").mkdir()
    for built in [ROOT / "build/capi", *(ROOT / "build").glob("libleat.*")]:
        (tmp_path / "build" / built.name).symlink_to(built)
    programs = tmp_path / "bin"
    programs.mkdir()
    for place in os.get_exec_path():
        for program in os.scandir(place) if os.path.isdir(place) else []:
            if program.name != TOOLS[language] and not os.path.lexists(programs / program.name):
                (programs / program.name).symlink_to(program.path)
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "GO", "CARGO", "NODE")}
    built = subprocess.run([tmp_path / "tools/clients.sh"], env=dict(environment, PATH=str(programs), CLIENTS=language),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
    assert built.returncode == 1, built.stdout
    assert f"not built: {language}" in built.stdout and TOOLS[language] in built.stdout


def test_it_says_which_clients_were_chosen():
    said = subprocess.run([sys.executable, ROOT / "tools/run_tests.py", "--only", "tidy"], capture_output=True, text=True,
                          env=dict(os.environ, CLIENTS="c,python"), timeout=100, check=True).stdout
    assert said.startswith("of the clients, only: c, python (CLIENTS=c,python)\n")
