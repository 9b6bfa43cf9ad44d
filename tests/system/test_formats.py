"""If these tests failed, `leat sub --format` (kcat's format strings) or `--json` would print records
wrongly."""
import base64
import os
import random
import time

from test_pub_sub import read_all, read_json


def test_format_knows_what_kcat_knows(leat):
    leat("topic", "create", "t", "--timestamps", check=True)
    before = int(time.time() * 1000)
    leat("pub", "t", "--key-separator", ":", "--header", "h=1", input="key:value\nx\n", check=True)
    text = read_all(leat, "t", "--format",
                    r"%t|%p|%o|%k|%s|%S|%K|%h|%T|%%|\\|\t|\x41\n")
    first, second = text.splitlines()
    fields = first.split("|")
    assert fields[:8] == ["t", "0", "0", "key", "value", "5", "3", "h=1"]
    assert before <= int(fields[8]) <= time.time() * 1000
    assert fields[9:] == ["%", "\\", "\t", "A"]
    assert second.startswith("t|0|1||x|1|-1|h=1|")


def test_timestamp_of_a_topic_without_them_is_minus_one(leat):
    leat("pub", "t", input="x\n", check=True)
    assert read_all(leat, "t", "--format", "%T") == "-1"


def test_json_has_only_what_is_there(leat):
    leat("pub", "t", input="hello\n", check=True)
    assert read_all(leat, "t", "--json") == '{"offset":0,"partition":0,"value":"hello"}\n'


def test_json_escapes_everything_that_needs_it(leat):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    source = random.Random(seed)
    alphabet = "aä€😀\"\\/\b\f\t\r\x01\x1f\x7f\u2028"
    values = ["".join(source.choices(alphabet, k=source.randrange(20))) for _ in range(200)]
    leat("pub", "t", "--key-separator", "=", input="\n".join(f"k{v}={v}" for v in values) + "\n",
         check=True)
    records = read_json(leat, "t")
    assert [r["value"] for r in records] == values
    assert [r["key"] for r in records] == ["k" + v for v in values]


def test_json_of_bytes_that_are_not_utf8(leat):
    bad = [b"\xff", b"\xc3", b"ab\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\xaf",
           b"\xe2\x82", b"\xf0\x8f\xbf\xbf"]
    good = ["é".encode(), b"\xf4\x8f\xbf\xbf", b"\xed\x9f\xbf", b"\xee\x80\x80", b""]
    seed = random.randrange(1 << 30)
    print("seed", seed)
    source = random.Random(seed)
    more = [source.randbytes(source.randrange(1, 9)).replace(b"\n", b"").replace(b":", b"")
            for _ in range(300)]
    values = bad + good + more
    leat("pub", "t", "--key-separator", ":", text=False, check=True,
         input=b"".join(value + b":" + value + b"\n" for value in values))
    records = read_json(leat, "t")
    assert len(records) == len(values)
    for value, record in zip(values, records):
        try:
            text = value.decode()
            assert record["value"] == text and record["key"] == text
            assert "value_base64" not in record and "key_base64" not in record
        except UnicodeDecodeError:
            assert base64.b64decode(record["value_base64"], validate=True) == value
            assert base64.b64decode(record["key_base64"], validate=True) == value
            assert "value" not in record and "key" not in record
    assert "value_base64" in records[0] and "value" in records[len(bad)]


def test_json_headers_that_are_not_utf8(leat):
    leat("pub", "t", "--header", os.fsdecode(b"h=\xff\xfe"), "--header", "g=ok", input="x\n", check=True)
    record, = read_json(leat, "t")
    assert record["headers"] == {"g": "ok"}
    assert base64.b64decode(record["headers_base64"]["h"]) == b"\xff\xfe"
