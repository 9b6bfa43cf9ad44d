"""If this failed, a record would depend on the language that wrote it, or on the one that reads it.

Every language publishes into one topic; every language and `leat sub` then read all of it, and see the same. And:
a publisher of any language that is killed within a batch leaves what every reader can go on from.
"""
import base64
import json
import os
import random
import subprocess
import sys
import time
from urllib.parse import quote

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "conformance"))
import run  # pylint: disable=wrong-import-position

BUILD = ROOT / "build"
LANGUAGES = os.environ.get("CLIENTS", ",".join(run.drivers(BUILD))).split(",")
EVERY_BYTE = bytes(range(256))
LARGEST = 1 << 20  # Half a segment of the topic, less what describes the record.
# What each language publishes, besides records of its own name: (value, key, headers).
RECORDS = [(b"", None, []), (b"", b"", []), (EVERY_BYTE[:64], EVERY_BYTE[-64:], []),
           (b"v", b"\0", [(b"\0\xff", b""), (b"name", EVERY_BYTE[100:160]), (b"name", b"again")]),
           (b"z" * 65, None, [(b"h", b"y" * 3000)]), (b"x" * (LARGEST - 1000), b"large", [])]
ROUNDS = 3  # Kills of each language.
BATCH = 400  # Records.


def encoded(some):
    """Bytes as a driver reads and writes them."""
    return quote(some, safe="-_.,/+")


def shown(some):
    """Bytes as a driver prints them."""
    if len(some) <= 64:
        return encoded(some).replace("~", "%7E")
    hashed = 0xcbf29ce484222325
    for byte in some:
        hashed = (hashed ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return f"{len(some)}*{hashed:016x}"


def line_of(offset, record):
    """A record as a driver prints it."""
    value, key, headers = record
    words = [f"record partition=0 offset={offset} value={shown(value)}"]
    words += [f"key={shown(key)}"] if key is not None else []
    words += [f"header={shown(name)}:{shown(content)}" for name, content in headers]
    return " ".join(words + ["timestamp=1"])


def command_of(record):
    value, key, headers = record
    large = f"fill={len(value)}:{value[0]:02X}" if len(value) > 1000 else f"value={encoded(value)}"
    words = [f"publish p {large}"] + ([f"key={encoded(key)}"] if key is not None else [])
    return " ".join(words + [f"header={encoded(name)}:{encoded(content)}" for name, content in headers])


class Crowd(run.Scenario):
    """One driver of each language, with a publisher in one topic."""

    def __init__(self, options):
        super().__init__(run.scenarios()["values"], BUILD, "c")
        self.create = f"create t topic {options}"

    def __enter__(self):
        assert self.start("c", self.create)
        return self

    def __exit__(self, *_):
        for driver in self.running.values():
            driver.end(kill=True)
        run.shutil.rmtree(self.directory, ignore_errors=True)

    def start(self, language, first="open t topic timeout=10000", name=None):
        driver = self.running[name or language] = run.Driver(self.commands[language], self.environment)
        for command in (first, "publisher p t"):
            assert driver.ask(command)[-1].startswith("ok"), (language, command)
        return driver


def read_by_cli(crowd, count):
    """The same lines from `leat sub`."""
    said = subprocess.run(["leat", "sub", "topic", "--from", "beginning", "-n", str(count), "--json"],
                          env=crowd.environment, capture_output=True, timeout=60, check=True).stdout
    lines = []
    for line in said.splitlines():
        facts = json.loads(line)

        def bytes_of(name, facts=facts):
            if f"{name}_base64" in facts:
                return base64.b64decode(facts[f"{name}_base64"])
            return facts[name].encode() if facts.get(name) is not None else None
        lines.append((facts["offset"], bytes_of("value"), bytes_of("key"), facts["timestamp_ms"] > 0))
    return lines


def test_each_language_reads_what_each_publishes():
    with Crowd("capacity=134217728 segment=4194304 timestamps=1") as crowd:
        written = []
        for language in LANGUAGES:
            driver = crowd.running.get(language) or crowd.start(language)
            for record in [(language.encode(), None, []), *RECORDS]:
                assert driver.ask(command_of(record)) == [f"ok offset={len(written)}"], language
                written.append(record)
            assert driver.ask("claim p size=8")[-1].startswith("ok")
            assert driver.ask("abort p") == ["ok"]
            written.append(None)
        assert crowd.running["c"].ask("publish p value=end") == [f"ok offset={len(written)}"]
        written.append((b"end", None, []))
        expected = [line_of(offset, record) if record
                    else f"gap partition=0 offset={offset} count=1 reason=aborted"
                    for offset, record in enumerate(written)] + ["ok"]
        for language in LANGUAGES:
            for way in ("take", "view"):
                assert crowd.running[language].ask("subscriber s t from=beginning") == ["ok"]
                got = crowd.running[language].ask(f"{way} s count={len(written) - len(LANGUAGES)}")
                # On a busy machine it may be older than a driver calls now.
                assert [line.replace("timestamp=0", "timestamp=1") for line in got] == expected, (
                    language, way)
                assert crowd.running[language].ask("close s") == ["ok"]
        records = [(offset, *record[:2], True) for offset, record in enumerate(written) if record]
        assert read_by_cli(crowd, len(records)) == records


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_publisher_dies_within_a_batch(language):
    """What is left of its batches is whole ones, in order; others go on."""
    with Crowd("capacity=16777216 retain_all=1") as crowd:
        for number in range(ROUNDS):
            victim = crowd.start(language, name="victim")
            victim.process.stdin.write("".join(
                f"batch p count={BATCH} prefix={number}-{batch}-\n" for batch in range(50)))
            victim.process.stdin.flush()
            assert victim.lines.get(timeout=run.SECONDS).startswith("ok")
            time.sleep(random.uniform(0, 0.01))
            victim.end(kill=True)
            assert crowd.running["c"].ask(f"publish p value=after-{number}")[-1].startswith("ok")
        assert crowd.running["c"].ask("subscriber s t from=beginning") == ["ok"]
        lines = [""]
        while f"value=after-{ROUNDS - 1}" not in lines[-1]:
            lines += crowd.running["c"].ask("poll s limit=1000")[:-1]
        next_offset = 0
        values = []
        for line in lines[1:]:
            words = dict(word.split("=", 1) for word in line.split()[1:])
            assert int(words["offset"]) == next_offset, line
            next_offset += int(words.get("count", 1))
            values += [words["value"]] if line.startswith("record") else []
        for number in range(ROUNDS):
            own = [value for value in values if value.startswith(f"{number}-")]
            assert own and len(own) % BATCH == 0
            assert own == [f"{number}-{i // BATCH}-{i % BATCH}" for i in range(len(own))]
