"""If this failed, a process of one language that dies would take records with it, or hold up those of others.

A group has a member of each language, and each is killed in turn while it holds records; the others get these, and
nothing is lost. The same for publishers that hold a claim. The processes are the drivers of tests/conformance.

How long the others were held up is a property of the test, in its report, and shown by `pytest -rP`. No test
asserts it. It is the time from when the killed process was waited for (the kernel has released its lock before)
to the answer of the driver that slept until then.
"""
import os
import re
import statistics
import sys
import time

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "conformance"))
import run  # pylint: disable=wrong-import-position

BUILD = ROOT / "build"
LANGUAGES = os.environ.get("CLIENTS", ",".join(run.drivers(BUILD))).split(",")
ROUNDS = 20
MEMBERS = max(2, len(LANGUAGES))  # Somebody is left.
RECORDS = 40  # In a round.
SECONDS = 60  # For a round.


class Crowd(run.Scenario):
    """One driver of each language in the directories of a scenario."""

    def __init__(self):
        super().__init__(run.scenarios()["groups"], BUILD, "c")

    def start(self, number):
        """A member of the group, and a publisher, of one of the languages in turn."""
        language = LANGUAGES[number % len(LANGUAGES)]
        driver = self.running[number] = run.Driver(self.commands[language], self.environment)
        for command in ("open t topic timeout=10000", "group g t workers from=beginning", "join m g",
                        "publisher p t"):
            assert driver.ask(command)[-1].startswith("ok"), (language, command)

    def kill(self, number):
        self.running.pop(number).end(kill=True)

    def kill_while_it_sleeps(self, victim, sleeper, command):
        """Kills the victim while another driver waits for the end of a command; (its answer, seconds from the death)."""
        waiting = self.running[sleeper]
        waiting.send(command)
        time.sleep(0.05)  # Now it sleeps, or else it finds the dead when it comes: both must do.
        self.kill(victim)
        start = time.monotonic()
        return waiting.hear(command), time.monotonic() - start

    def work(self, number, limit):
        """Receives up to so many records; returns the numbers of the deliveries, and the values."""
        return deliveries(self.running[number].ask(f"receive m limit={limit} timeout=20"))

    def acknowledge(self, number, received):
        """Acknowledges what a member received; returns the values."""
        if received:
            which = " ".join(delivery for delivery, _ in received)
            assert self.running[number].ask(f"acknowledge m {which}") == [f"ok count={len(received)}"]
        return {value for _, value in received}


def deliveries(lines):
    """The numbers of the deliveries in an answer, and the values."""
    assert lines[-1] in ("ok", "error timeout"), lines
    found = [re.search(r"value=(\S+).* delivery=(\d+) ", line) for line in lines[:-1]]
    return [(match[2], match[1]) for match in found]


def report(record_property, seconds):
    """How long the others were held up by the dead, in the report of the test."""
    for name, value in (("median", statistics.median(seconds)), ("max", max(seconds))):
        record_property(f"{name}_ms_after_death", round(value * 1000, 2))
        print(f"held up after a death: {name} {value * 1000:.2f} ms, of {len(seconds)}")


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


def test_whoever_dies_others_get_its_records(crowd, record_property):
    seconds = []
    for member in range(MEMBERS):
        crowd.start(member)
    for number in range(ROUNDS):
        published = {f"{number}-{i}" for i in range(RECORDS)}
        assert crowd.running["first"].ask(f"batch p count={RECORDS} prefix={number}-")[-1].startswith("ok")
        victim, heir = number % MEMBERS, (number + 1) % MEMBERS
        held = {value for _, value in crowd.work(victim, 5)}  # It dies with them.
        assert held
        done = set()
        deadline = time.monotonic() + SECONDS
        while done != published - held:
            assert time.monotonic() < deadline, (number, victim, sorted(published - held - done))
            for member in set(range(MEMBERS)) - {victim}:
                done |= crowd.acknowledge(member, crowd.work(member, 7))
        lines, waited = crowd.kill_while_it_sleeps(victim, heir, f"receive m limit=5 timeout={SECONDS * 1000}")
        seconds.append(waited)
        inherited = crowd.acknowledge(heir, deliveries(lines))
        while inherited != held:
            assert time.monotonic() < deadline, (number, victim, sorted(held - inherited))
            inherited |= crowd.acknowledge(heir, crowd.work(heir, 5))
        crowd.start(victim)
    report(record_property, seconds)


def test_whoever_dies_with_a_claim_others_go_on(crowd, record_property):
    seconds = []
    first = crowd.running["first"]
    for member in range(MEMBERS):
        crowd.start(member)
    for number in range(ROUNDS):
        victim = number % MEMBERS
        offset = 3 * number
        assert crowd.running[victim].ask("publish p value=of-the-dead") == [f"ok offset={offset}"]
        assert crowd.running[victim].ask("claim p size=8") == [f"ok offset={offset + 1}"]
        assert first.ask("publish p value=after") == [f"ok offset={offset + 2}"]
        lines, waited = crowd.kill_while_it_sleeps(victim, "first", "take s count=2")
        seconds.append(waited)
        assert lines == [
            f"record partition=0 offset={offset} value=of-the-dead",
            f"gap partition=0 offset={offset + 1} count=1 reason=died",
            f"record partition=0 offset={offset + 2} value=after", "ok"], victim
        crowd.start(victim)
    report(record_property, seconds)
