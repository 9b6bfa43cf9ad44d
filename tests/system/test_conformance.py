"""If this failed, a client of another language would do something else than C and C++ do.

Each scenario of tests/conformance with each language is a case. A language that cannot do what a scenario asks
for, by its nature, passes with the reason in the table, which `tests/conformance/run.py` prints.
"""
import os
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "conformance"))
import run  # pylint: disable=wrong-import-position

BUILD = ROOT / "build"
LANGUAGES = os.environ.get("CLIENTS", ",".join(run.drivers(BUILD))).split(",")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", list(run.scenarios()))
def test_conformance(name, language):
    assert run.is_built(BUILD, language), f"the driver of {language} was not built"
    scenario = run.Scenario(run.scenarios()[name], BUILD, language)
    try:
        scenario.run()
    except run.NotApplicable as reason:
        assert str(reason)
