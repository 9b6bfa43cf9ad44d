"""If this failed, a record would depend on the language that wrote it, or on the one that reads it.

Every language publishes into one topic; every language and `leat sub` then read all of it, and see the same.
"""
import base64
import json
import re
import subprocess
import time
from urllib.parse import quote

from conftest import run

EVERY_BYTE = bytes(range(256))
# What each language publishes, besides a record of its own name and the largest one: (value, key, headers).
RECORDS = [(b"", None, []), (b"", b"", []), (EVERY_BYTE[:64], EVERY_BYTE[-64:], []),
           (b"v", b"\0", [(b"\0\xff", b""), (b"name", EVERY_BYTE[100:160]), (b"name", b"again")]),
           (b"z" * 65, None, [(b"h", b"y" * 3000)]),
           (EVERY_BYTE, EVERY_BYTE, [(EVERY_BYTE, EVERY_BYTE)])]
TIMESTAMP = 8  # Bytes, which count towards the size of a record.


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
    return " ".join(words)


def command_of(record):
    value, key, headers = record
    large = f"fill={len(value)}:{value[0]:02X}" if len(value) > 1000 else f"value={encoded(value)}"
    words = [f"publish p {large}"] + ([f"key={encoded(key)}"] if key is not None else [])
    return " ".join(words + [f"header={encoded(name)}:{encoded(content)}" for name, content in headers])


def leat(crowd, *arguments):
    return subprocess.run(["leat", *arguments], env=crowd.environment, capture_output=True, timeout=60,
                          check=True).stdout


def headers_of(facts):
    """Pairs of a line of JSON, in which those of one name are a list, and those that are no text base64."""
    pairs = []
    for part, decode in (("headers", str.encode), ("headers_base64", base64.b64decode)):
        for name, contents in facts.get(part, {}).items():
            pairs += [(name, decode(each)) for each in (contents if isinstance(contents, list) else [contents])]
    return sorted(pairs)


def read_by_cli(crowd, count):
    """(offset, value, key, headers, timestamp) of each record, from `leat sub`."""
    records = []
    for line in leat(crowd, "sub", "topic", "--from", "beginning", "-n", str(count), "--json").splitlines():
        facts = json.loads(line)

        def bytes_of(name, facts=facts):
            if f"{name}_base64" in facts:
                return base64.b64decode(facts[f"{name}_base64"])
            return facts[name].encode() if facts.get(name) is not None else None
        records.append((facts["offset"], bytes_of("value"), bytes_of("key"), headers_of(facts),
                        facts["timestamp_ms"]))
    return records


def read_by(driver, way, count):
    """The lines of a driver that reads all records, without their timestamps, and these."""
    assert driver.ask("subscriber s t from=beginning") == ["ok"]
    lines = driver.ask(f"{way} s count={count}")
    assert driver.ask("close s") == ["ok"]
    times = [int(found[1]) for line in lines if (found := re.search(r" timestamp=(\d+)$", line))]
    return [re.sub(r" timestamp=\d+$", "", line) for line in lines], times


def publish_all(crowd, largest):
    """Lets each language publish; the records by their offsets, and None where there is a gap."""
    written = []
    for language in run.chosen():
        driver = crowd.start(language, language, "open t topic", "publisher p t")
        for record in [(language.encode(), None, []), *RECORDS, (b"x" * largest, None, [])]:
            assert driver.ask(command_of(record)) == [f"ok offset={len(written)}"], language
            written.append(record)
        for too_much in (f"fill={largest + 1}:78", f"fill={largest}:78 key=", f"fill={largest}:78 header=a:"):
            assert driver.ask(f"publish p {too_much}") == ["error too_large"], (language, too_much)
        assert driver.ask("claim p size=8")[-1].startswith("ok")
        assert driver.ask("abort p") == ["ok"]
        written.append(None)
    return written


def test_each_language_reads_what_each_publishes():
    with run.Crowd() as crowd:
        # Segments so small that the largest record is one that every language can hash, many times.
        first = crowd.start("first", "c", "create t topic capacity=33554432 segment=524288 timestamps=1",
                            "publisher p t")
        largest = json.loads(leat(crowd, "topic", "info", "topic", "--json"))["max_record_bytes"] - TIMESTAMP
        started = time.time()
        written = publish_all(crowd, largest)
        assert first.ask("publish p value=end") == [f"ok offset={len(written)}"]
        ended = time.time()
        written.append((b"end", None, []))
        expected = [line_of(offset, record) if record
                    else f"gap partition=0 offset={offset} count=1 reason=aborted"
                    for offset, record in enumerate(written)] + ["ok"]
        records = [(offset, *record) for offset, record in enumerate(written) if record]
        times = read_by(first, "take", len(records))[1]
        assert len(times) == len(records)
        assert started - 1 < min(times) / 1000 <= max(times) / 1000 < ended + 1  # The kernel's coarse clock lags a bit.
        for language in run.chosen():
            for way in ("take", "view"):
                assert read_by(crowd.running[language], way, len(records)) == (expected, times), (language, way)
        assert read_by_cli(crowd, len(records)) == [
            (offset, value, key, sorted((name.decode(errors="replace"), content) for name, content in headers), then)
            for (offset, value, key, headers), then in zip(records, times, strict=True)]
