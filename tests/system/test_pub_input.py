"""`leat pub`: what becomes a record: arguments, lines of stdin or a file, JSON, and records told apart by
something else than newlines; and that `leat sub` writes all of these so that `leat pub` reads them."""
import json
import random
import struct

import pytest

from test_cli import info, one_line
from test_pub_sub import read_all, read_json


def values(leat, topic):
    return [record["value"] for record in read_json(leat, topic)]


def with_lengths(records):
    return b"".join(struct.pack("<I", len(record)) + record for record in records)


# --- Messages -------------------------------------------------------------------------------------

def test_each_argument_is_a_record(leat):
    leat("pub", "t", "hello", "two words", "", "-5", "[1,2]", "{}", '{"a": 1}', "a,b", "%%", "sub",
         "line\nbreak", check=True)
    assert values(leat, "t") == ["hello", "two words", "", "-5", "[1,2]", "{}", '{"a": 1}', "a,b", "%%",
                                 "sub", "line\nbreak"]


def test_stdin_is_not_read_if_there_are_arguments(leat):
    leat("pub", "t", "argument", input="line\n", check=True)
    assert values(leat, "t") == ["argument"]


@pytest.mark.parametrize("arguments, expected", [
    (["--", "-x", "--count", "-", "++"], ["-x", "--count", "-", "++"]),
    (["a", "--", "-x"], ["a", "-x"]),
    (["a", "--", "b", "--", "c"], ["a", "b", "--", "c"]),
    (["--header", "h=1", "a", "-H", "i=2", "b"], ["a", "b"]),
], ids=lambda value: " ".join(value))
def test_messages_may_begin_with_a_dash_behind_two(leat, arguments, expected):
    if "-" in arguments:  # It stands for stdin, wherever it is.
        one_line(leat("pub", "t", *arguments), 2, "only MESSAGE")
        arguments, expected = ([word for word in words if word != "-"] for words in (arguments, expected))
    leat("pub", "t", *arguments, check=True)
    assert values(leat, "t") == expected


def test_messages_have_keys_headers_and_partitions_as_lines_have(leat):
    leat("topic", "create", "t", "--partitions", "3", check=True)
    leat("pub", "t", "k:v", "none", "-K", ":", "-H", "h=1", "-p", "2", check=True)
    assert [(r.get("key"), r["value"], r["headers"], r["partition"]) for r in read_json(leat, "t")] == [
        ("k", "v", {"h": "1"}, 2), (None, "none", {"h": "1"}, 2)]


def test_message_that_is_too_large_is_refused(leat):
    leat("topic", "create", "t", "--capacity", "8KiB", check=True)
    done = leat("pub", "t", "fits", "x" * 2_033, "later")
    one_line(done, 2, "message 2", "2,033 bytes", "at most 2,032 bytes", "--segment-size 8KiB",
             "1 record was sent", "the messages after it were not")
    assert values(leat, "t") == ["fits"]


def test_message_that_names_a_file_is_published_with_a_note(leat, tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\n")
    leat("topic", "create", "t", check=True)
    done = leat("pub", "t", file, check=True)
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("leat: note: ")
    assert f"'{file}'" in done.stderr and f"--file {file} publishes its lines" in done.stderr
    assert values(leat, "t") == [str(file)]
    # No note about a directory, about several messages, or if there is no such file.
    for messages in ([tmp_path], [file, "more"], [tmp_path / "missing"]):
        assert leat("pub", "t", *messages, check=True).stderr == ""


@pytest.mark.parametrize("options", [["-"], [], ["--file", "-"], ["-l", "-"]], ids=" ".join)
def test_nothing_and_a_dash_mean_stdin(leat, options):
    leat("pub", "t", *options, input="one\ntwo\n", check=True)
    assert values(leat, "t") == ["one", "two"]


def test_dash_may_be_limited(leat):
    leat("pub", "t", "-", "-n", "1", input="one\ntwo\n", check=True)
    assert values(leat, "t") == ["one"]


@pytest.mark.parametrize("option", ["-l", "--file"])
def test_file_is_published_line_by_line(leat, tmp_path, option):
    (tmp_path / "lines").write_text("one\ntwo")
    leat("pub", "t", option, tmp_path / "lines", check=True)
    assert values(leat, "t") == ["one", "two"]


# --- JSON -----------------------------------------------------------------------------------------

def test_json_lines_become_records(leat):
    lines = [{"value": "v"}, {"value": "", "key": ""}, {"value": "ä\n\u0000", "key": "k"},
             {"value": "h", "headers": {"a": "1", "b": ["2", "3"]}}, {"value_base64": "/w==",
                                                                      "key_base64": "/g=="}]
    leat("pub", "t", "--json", input="".join(json.dumps(line) + "\n" for line in lines), check=True)
    records = read_json(leat, "t")
    for line, record in zip(lines, records, strict=True):
        assert {key: record[key] for key in record if key not in ("offset", "partition")} == line


@pytest.mark.parametrize("arguments", [["-J", "--header", "x=y"], ["--json", "-H", "x=y"]], ids=" ".join)
def test_json_messages_get_the_headers_of_the_command_line_too(leat, arguments):
    leat("pub", "t", *arguments, '{"value":"[1]","headers":{"a":"b"}}', '{"value":"2"}', check=True)
    assert [(r["value"], r["headers"]) for r in read_json(leat, "t")] == [
        ("[1]", {"a": "b", "x": "y"}), ("2", {"x": "y"})]


def test_what_sub_writes_as_json_is_copied_whole(leat):
    """With keys, headers and any bytes; offset, partition and timestamp are those of the copy."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    source = random.Random(seed)
    leat("topic", "create", "a", "--timestamps", check=True)
    leat("topic", "create", "b", "--partitions", "4", check=True)
    records = [source.randbytes(source.randrange(40)) for _ in range(300)]
    leat("pub", "a", "--length-prefixed", "--key-separator", "\\t", "--header", "h=1", check=True,
         text=False, input=with_lengths(records))
    written = read_all(leat, "a", "--json")
    leat("pub", "b", "--json", input=written, check=True)

    def essence(record):
        place = ("offset", "partition", "timestamp_ms")
        return json.dumps({key: record[key] for key in record if key not in place}, sort_keys=True)
    assert sorted(essence(record) for record in read_json(leat, "b")) == sorted(
        essence(json.loads(line)) for line in written.split("\n")[:-1])


@pytest.mark.parametrize("line, words", [
    ("hello", ["no JSON object", '{"key":"user1","value":"hello"}']),
    ("", ["no JSON object"]),
    ("[]", ["no JSON object"]),
    ('{"value":', ["no JSON object"]),
    ("{}", ['no "value"', '{"value":"hello"}']),
    ('{"vlaue":"x"}', ['unknown "vlaue"', "did you mean 'value'?"]),
    ('{"value":7}', ['"value" that is no string']),
    ('{"value":"x","value_base64":"eA=="}', ['both "value" and "value_base64"']),
    ('{"value_base64":"x"}', ["not base64"]),
    ('{"value":"x","headers":["h"]}', ["no object"]),
    ('{"value":"x","headers":{"":"h"}}', ["empty name"]),
])
def test_json_that_is_no_record_is_refused_by_its_number(leat, line, words):
    leat("topic", "create", "t", check=True)
    done = leat("pub", "t", "--json", input=f'{{"value":"first"}}\n{line}\n{{"value":"third"}}\n')
    one_line(done, 2, "record 2 ", "1 record was sent", *words)
    assert values(leat, "t") == ["first"]


def test_json_record_that_is_too_large_is_refused(leat):
    leat("topic", "create", "t", "--capacity", "8KiB", check=True)
    limit = 2_032
    leat("pub", "t", "--json", json.dumps({"value": "\0" * limit}), check=True)
    one_line(leat("pub", "t", "--json", json.dumps({"value": "x" * (limit + 1)})), 2, "2,033 bytes",
             "at most 2,032 bytes")
    one_line(leat("pub", "t", "--json", input=json.dumps({"value": "x" * 1_000_000})), 2,
             "record 1", "at most 2,032 bytes")
    assert info(leat, "t")["partitions"][0]["end"] == 1


# --- Told apart by something else than newlines ---------------------------------------------------

@pytest.mark.parametrize("delimiter, text", [
    (";", "a;b\n;;c"), ("\\t", "a\tb\n\t\tc"), ("\\x1e", "a\x1eb\n\x1e\x1ec"), ("<>", "a<>b\n<><>c"),
    ("%", "a%b\n%%c"), ("\\\\", "a\\b\n\\\\c"), ("\\0", "a\0b\n\0\0c")])
def test_delimiter_ends_a_record(leat, delimiter, text):
    leat("pub", "t", "--delimiter", delimiter, input=text, check=True)
    assert values(leat, "t") == ["a", "b\n", "", "c"]
    written = read_all(leat, "t", "-D", delimiter)
    assert written == text + text[1:text.index("b")]
    leat("pub", "again", "-D", delimiter, input=written, check=True)
    assert values(leat, "again") == ["a", "b\n", "", "c"]


@pytest.mark.parametrize("option", ["-0", "--null"])
def test_zero_byte_ends_a_record(leat, option):
    leat("pub", "t", option, input=b"a\nb\0\0last", text=False, check=True)
    assert values(leat, "t") == ["a\nb", "", "last"]
    assert read_all(leat, "t", option, text=False) == b"a\nb\0\0last\0"


def test_lengths_go_before_records(leat):
    records = [b"", b"a\nb", bytes(range(256)), b"x" * 300_000]
    leat("pub", "t", "--length-prefixed", input=with_lengths(records), text=False, check=True)
    assert read_all(leat, "t", "--length-prefixed", text=False) == with_lengths(records)


def test_length_prefixed_input_that_ends_inside_a_record_is_refused(leat):
    leat("topic", "create", "t", check=True)
    whole = with_lengths([b"first", b"second"])
    done = leat("pub", "t", "--length-prefixed", input=whole[:-1].decode("latin-1"))
    one_line(done, 2, "record 2 is cut", "1 record was sent")
    one_line(leat("pub", "t", "--length-prefixed", input="\x00\x00\x00\x10hello"), 2, "record 1",
             "268,435,456 bytes", "at most 524,272 bytes")
    assert values(leat, "t") == ["first"]
