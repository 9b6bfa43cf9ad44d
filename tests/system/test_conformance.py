"""If this failed, a client of another language would do something else than C and C++ do.

Each scenario of tests/conformance with each language is a case. It is skipped, with the reason, if the language
cannot do by its nature what the scenario asks for; docs/clients.md must say so, too.
"""
import os
import subprocess

import pytest
from conftest import ROOT, run


def documented(name, language):
    """The cell of the table in docs/clients.md: `yes`, or a note."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in (ROOT / "docs" / "clients.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    row = next(row for row in rows if row[0] == f"`{name}`")
    return row[[title.lower() for title in rows[0]].index(language)]


@pytest.mark.parametrize("language", run.chosen())
@pytest.mark.parametrize("name", list(run.scenarios()))
def test_conformance(name, language):
    assert run.is_built(run.BUILD, language), f"the driver of {language} was not built"
    scenario = run.Scenario(run.scenarios()[name], run.BUILD, language)
    try:
        scenario.run()
    except run.NotApplicable as reason:
        assert documented(name, language).startswith("[^")
        pytest.skip(str(reason))
    assert documented(name, language) == "yes"


@pytest.mark.parametrize("clients, languages", [("", list(run.drivers(run.BUILD))), ("c,python", ["c", "python"]),
                                                ("lua", ["lua", "luajit"])])
def test_clients_chooses(monkeypatch, clients, languages):
    monkeypatch.setenv("CLIENTS", clients)
    assert run.chosen() == languages


@pytest.mark.parametrize("command", [["tools/clients.sh"], ["tools/run_tests.py", "--only", "tidy"]])
def test_clients_that_there_are_not_get_one_line(command):
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ, CLIENTS="c,cobol"), capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "no client is called 'cobol'; there are c" in done.stderr
