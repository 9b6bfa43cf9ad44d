"""If this failed, a process of one language that dies would take records with it, or hold up those of others.

A group has a member of each language, and each is killed in turn while it holds records; the others get these, and
nothing is lost. The same for publishers that hold a claim. The processes are the drivers of tests/conformance.
"""
import os
import re
import sys
import time

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "conformance"))
import run  # pylint: disable=wrong-import-position

BUILD = ROOT / "build"
LANGUAGES = os.environ.get("CLIENTS", ",".join(run.drivers(BUILD))).split(",")
ROUNDS = 20
RECORDS = 40  # In a round.
SECONDS = 60  # For a round.


class Crowd(run.Scenario):
    """One driver of each language in the directories of a scenario."""

    def __init__(self):
        super().__init__(run.scenarios()["groups"], BUILD, "c")

    def start(self, language):
        """A member of the group, and a publisher."""
        driver = self.running[language] = run.Driver(self.commands[language], self.environment)
        for command in ("open t topic timeout=10000", "group g t workers from=beginning", "join m g",
                        "publisher p t"):
            assert driver.ask(command)[-1].startswith("ok"), (language, command)

    def kill(self, language):
        self.running.pop(language).end(kill=True)

    def work(self, language, limit):
        """Receives up to so many records; returns the numbers of the deliveries, and the values."""
        lines = self.running[language].ask(f"receive m limit={limit} timeout=20")
        assert lines[-1] in ("ok", "error timeout"), (language, lines)
        found = [re.search(r"value=(\S+).* delivery=(\d+) ", line) for line in lines[:-1]]
        return [(match[2], match[1]) for match in found]

    def acknowledge(self, language, deliveries):
        numbers = " ".join(number for number, _ in deliveries)
        assert self.running[language].ask(f"acknowledge m {numbers}") == [f"ok count={len(deliveries)}"]


@pytest.fixture
def crowd():
    made = Crowd()
    first = made.running["first"] = run.Driver(made.commands["c"], made.environment)
    assert first.ask("create t topic") == ["ok"]
    assert first.ask("publisher p t") == ["ok"]
    assert first.ask("subscriber s t from=beginning") == ["ok"]
    assert first.ask("group g t workers from=beginning") == ["ok created=1"]
    yield made
    for driver in made.running.values():
        driver.end(kill=True)
    run.shutil.rmtree(made.directory, ignore_errors=True)


def test_whoever_dies_others_get_its_records(crowd):
    for language in LANGUAGES:
        crowd.start(language)
    for number in range(ROUNDS):
        published = {f"{number}-{i}" for i in range(RECORDS)}
        assert crowd.running["first"].ask(f"batch p count={RECORDS} prefix={number}-")[-1].startswith("ok")
        victim = LANGUAGES[number % len(LANGUAGES)]
        crowd.work(victim, 5)  # It dies with them.
        crowd.kill(victim)
        if len(LANGUAGES) == 1:
            crowd.start(victim)
        done = set()
        deadline = time.monotonic() + SECONDS
        while done != published:
            assert time.monotonic() < deadline, (number, victim, sorted(published - done))
            for language in LANGUAGES:
                if language not in crowd.running:
                    continue
                deliveries = crowd.work(language, 7)
                if deliveries:
                    crowd.acknowledge(language, deliveries)
                    done |= {value for _, value in deliveries}
            assert done <= published, done - published
        if victim not in crowd.running:
            crowd.start(victim)


def test_whoever_dies_with_a_claim_others_go_on(crowd):
    subscriber = crowd.running["first"]
    offset = 0
    for language in LANGUAGES:
        crowd.start(language)
        assert crowd.running[language].ask("publish p value=of-the-dead") == [f"ok offset={offset}"]
        assert crowd.running[language].ask("claim p size=8") == [f"ok offset={offset + 1}"]
        crowd.kill(language)
        assert subscriber.ask("publish p value=after") == [f"ok offset={offset + 2}"]
        assert subscriber.ask("take s count=2") == [
            f"record partition=0 offset={offset} value=of-the-dead",
            f"gap partition=0 offset={offset + 1} count=1 reason=died",
            f"record partition=0 offset={offset + 2} value=after", "ok"], language
        offset += 3
