"""If these tests failed, `leat topic`, help or version would be wrong, or a command would answer bad input
with anything but one line and the right exit code."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest

COMMANDS = [["topic"], ["topic", "create"], ["topic", "list"], ["topic", "info"],
            ["topic", "set"], ["topic", "shrink"], ["topic", "delete"], ["ls"], ["rm"], ["top"], ["pub"],
            ["sub"], ["group"], ["demo"], ["dump"], ["fsck"], ["backup"], ["restore"], ["doctor"], ["help"],
            ["version"], ["completion"], ["bench"]]
NOBODY = 65534


def one_line(done, code, *words):
    """Checks that the command failed with `code` and one line on stderr that contains all `words`."""
    assert done.returncode == code, f"exit {done.returncode}: {done.stderr}"
    assert done.stderr.count("\n") == 1 and done.stderr.endswith("\n"), done.stderr
    assert done.stderr.startswith("leat: "), done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert "terminate" not in done.stderr


def info(leat, name):
    return json.loads(leat("topic", "info", name, "--json", check=True).stdout)


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def run_as(leat, user, *arguments, directory=None):
    """Runs as another user, on that topic directory (None: the user's default)."""
    environment = {key: value for key, value in leat.environment.items() if key != "LEAT_DIR"}
    if directory is not None:
        environment["LEAT_DIR"] = str(directory)
    # The executable may be where only its owner has access, so its open descriptor is passed on.
    executable = os.open(leat.executable, os.O_RDONLY)
    try:
        return subprocess.run([f"/proc/self/fd/{executable}", *map(str, arguments)], user=user,
                              group=user, extra_groups=[], env=environment, text=True, timeout=60,
                              capture_output=True, stdin=subprocess.DEVNULL, cwd="/",
                              pass_fds=[executable])
    finally:
        os.close(executable)


# --- Help and version ----------------------------------------------------------------------------

def test_version_names_version_and_commit(leat):
    text = leat("--version", check=True).stdout
    assert re.fullmatch(r"leat \d+\.\d+\.\d+ \(commit \S+\)\n", text), text


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(leat, command):
    text = leat(*command, "--help", check=True).stdout
    assert "Usage: " in text and "\n\n\n" not in text
    example = text.split("Example:\n")[1]
    assert example.startswith("  leat " + command[0]) or "| leat " + command[0] in example


def test_help_lists_all_commands(leat):
    text = leat("--help", check=True).stdout
    for command in ("topic", "ls", "rm", "top", "pub", "sub", "group", "demo", "bench", "dump", "fsck", "backup",
                    "restore", "doctor", "help", "version", "completion", "serve", "lightq"):
        assert re.search(rf"^  {command} ", text, re.M)


@pytest.mark.parametrize("command", [[], *COMMANDS], ids=lambda words: " ".join(words) or "none")
def test_help_as_a_command_is_help_as_an_option(leat, command):
    done = leat("help", *command, check=True)
    assert done.stdout == leat(*command, "--help", check=True).stdout != ""
    assert done.stderr == ""
    assert leat("--dir", "/somewhere", "help", *command, check=True).stdout == done.stdout


def test_version_as_a_command_is_version_as_an_option(leat):
    assert leat("version", check=True).stdout == leat("--version", check=True).stdout != ""


# --- Bad input ------------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments, code, words", [
    ([], 2, ["needs a command", "topic", "demo"]),
    (["frobnicate"], 2, ["frobnicate", "topic", "demo"]),
    (["sbu"], 2, ["'sbu'", "did you mean 'sub'?", "demo"]),
    (["topics", "list"], 2, ["'topics'", "did you mean 'topic'?"]),
    (["topics"], 2, ["'topics'", "did you mean 'topic'?"]),
    (["create", "topic", "x"], 2, ["write `leat topic create`, not 'create topic'"]),
    (["create", "topic", "x", "--partitions", "2"], 2, ["write `leat topic create`"]),
    (["delete", "topic", "x"], 2, ["write `leat topic delete`"]),
    (["list", "topic"], 2, ["write `leat topic list`"]),
    (["list", "topics"], 2, ["'list'", "(did you mean `leat topic list`?)"]),
    (["list", "groups", "x"], 2, ["'list'", "(did you mean `leat group list`?)"]),
    (["list"], 2, ["'list'", "(did you mean `leat topic list` or `leat group list`?)"]),
    (["info", "news"], 2, ["'info'", "(did you mean `leat topic info` or `leat group info`?)"]),
    (["seek", "news", "workers", "end"], 2, ["'seek'", "(did you mean `leat group seek`?)"]),
    (["shrink", "news"], 2, ["'shrink'", "(did you mean `leat topic shrink`?)"]),
    (["show", "topic", "news"], 2, ["'show'", "did you mean `leat topic info`"]),
    (["publish"], 2, ["'publish'", "(did you mean `leat pub`?)"]),
    (["publish", "news", "hello"], 2, ["'publish'", "(did you mean `leat pub`?)"]),
    (["subscribe", "news"], 2, ["'subscribe'", "(did you mean `leat sub`?)"]),
    (["consume", "news", "--group", "g"], 2, ["'consume'", "(did you mean `leat sub`?)"]),
    (["remove", "news"], 2, ["'remove'", "(did you mean `leat rm`?)"]),
    (["help", "create", "topic"], 2, ["write `leat topic create`"]),
    (["help", "publish"], 2, ["'publish'", "(did you mean `leat pub`?)"]),
    (["chat"], 2, ["`leat` has no command 'chat'; there are:"]),
    (["news", "pub"], 2, ["write 'news' behind `leat pub`"]),
    (["news", "pub", "hello"], 2, ["write 'news' behind `leat pub`"]),
    (["news", "sub", "chat"], 2, ["write 'news' behind `leat sub`"]),
    (["topic", "news", "info"], 2, ["write 'news' behind `leat topic info`"]),
    (["help", "sbu"], 2, ["'sbu'", "did you mean 'sub'?"]),
    (["help", "topic", "craete"], 2, ["'craete'", "did you mean 'create'?"]),
    (["help", "pub", "extra"], 2, ["'extra' is one argument too many", "leat help --help"]),
    (["help", "topic", "create", "x"], 2, ["'x' is one argument too many"]),
    (["sbu", "--help"], 2, ["'sbu'", "did you mean 'sub'?"]),
    (["version", "1"], 2, ["'1'", "too many"]),
    (["completion", "bash", "zsh"], 2, ["'zsh' is one argument too many"]),
    (["complet"], 2, ["'complet'", "did you mean 'completion'?"]),
    (["--frobnicate"], 2, ["`leat`", "'--frobnicate'"]),
    (["--dir"], 2, ["--dir needs a value"]),
    (["sub", "-J=x", "t"], 2, ["'=x' stands behind an option that takes no value", "leat sub --help"]),
    (["topic", "list", "--json=x"], 2, ["--json takes no value", "leat topic list --help"]),
    (["topic", "list", "x: 1 required"], 2, ["'x: 1 required' is one argument too many"]),
    (["--json", "ls"], 2, ["write '--json' behind `leat ls`"]),
    (["ls", "--dir=", "--json"], 2, ["--dir", "the name of a directory"]),
    (["pub", "t", "--key-separator=", "hello"], 2, ["--key-separator", "one character"]),
    (["sub", "t", "--from", "1", "--from", "2"], 2, ["--from may be given only once"]),
    (["topic"], 2, ["create", "list", "info", "set", "shrink", "delete"]),
    (["topic", "frobnicate"], 2, ["frobnicate", "create"]),
    (["topic", "lsit"], 2, ["'lsit'", "did you mean 'list'?"]),
    (["topic", "create"], 2, ["NAME", "--help"]),
    (["topic", "create", "-x"], 2, ["`leat topic create`", "'-x'"]),
    (["topic", "create", "t", "-x"], 2, ["`leat topic create`", "'-x'"]),
    (["topic", "create", "a", "b", "c"], 2, ["'b'", "too many", "leat topic create --help"]),
    (["topic", "create", "t", "--partition", "2"], 2, ["'--partition'", "did you mean '--partitions'?"]),
    (["topic", "create", "t", "--capcity=1MiB"], 2, ["'--capcity=1MiB'", "did you mean '--capacity'?"]),
    (["topic", "create", "t", "--drr", "x"], 2, ["'--drr'", "did you mean '--dir'?"]),
    (["topic", "create", ""], 2, ["empty"]),
    (["topic", "create", "a/b"], 2, ["'a/b'", "letters, digits"]),
    (["topic", "create", "../up"], 2, ["'../up'"]),
    (["sub", "lightq://ann@host/news"], 2, ["'lightq://ann@host/news'", "--broker lightq://USER@HOST:PORT"]),
    (["topic", "create", "ä"], 2, ["not allowed"]),
    (["topic", "create", "x" * 201], 2, ["201", "200"]),
    (["topic", "create", "t", "--capacity", "much"], 2, ["--capacity", "'much'", "8MiB"]),
    (["topic", "create", "t", "--capacity", "-1"], 2, ["--capacity"]),
    (["topic", "create", "t", "--capacity", "8foo"], 2, ["--capacity", "8MiB"]),
    (["topic", "create", "t", "--capacity", "99999999999999999999"], 2, ["--capacity"]),
    (["topic", "create", "t", "--capacity", "999999TiB"], 2, ["--capacity", "1TiB"]),
    (["topic", "create", "t", "--capacity", "0"], 2, ["--capacity", "8KiB"]),
    (["topic", "create", "t", "--capacity", "10"], 2, ["--capacity", "10 bytes", "8KiB to 1TiB"]),
    (["topic", "create", "t", "--capacity", "8191"], 2, ["--capacity", "8KiB"]),
    (["topic", "create", "t", "--segment-size", "100MiB"], 2,
     ["--segment-size", "100 MiB", "8 MiB", "--capacity 200MiB", "--segment-size 4MiB"]),
    (["topic", "create", "t", "--segment-size", "5000", "--capacity", "10000"], 2,
     ["--segment-size", "--capacity 16KiB", "--segment-size 4KiB"]),
    (["topic", "create", "t", "--capacity", "64GiB"], 2, ["--segment-size 1GiB or less"]),
    (["topic", "create", "t", "--segment-size", "2GiB"], 2, ["--segment-size", "1 GiB"]),
    (["topic", "create", "t", "--capacity", "1GiB", "--segment-size", "4KiB"], 2,
     ["1024", "--segment-size 1MiB or more"]),
    (["topic", "create", "t", "--policy", "lose"], 2, ["--policy", "block, fail, overwrite"]),
    (["topic", "create", "t", "--retain", "some"], 2, ["--retain", "all"]),
    (["topic", "create", "t", "--retain", "all", "--policy", "overwrite"], 2, ["exclude"]),
    (["topic", "create", "t", "--retain", "all", "--evict-after", "2s"], 2, ["--evict-after", "exclude"]),
    (["topic", "create", "t", "--policy", "overwrite", "--evict-after", "2s"], 2,
     ["--policy overwrite", "--evict-after", "exclude"]),
    (["topic", "create", "t", "--partitions", "0"], 2, ["--partitions", "1 to"]),
    (["topic", "create", "t", "--partitions", "99999"], 2, ["--partitions", "1024"]),
    (["topic", "create", "t", "--participants", "0"], 2, ["--participants", "4096"]),
    (["topic", "create", "t", "--mode", "rw"], 2, ["--mode", "0660"]),
    (["topic", "create", "t", "--mode", "0777"], 2, ["--mode", "0660"]),
    (["topic", "create", "t", "--group", "no-such-group"], 2, ["--group", "no-such-group"]),
    (["topic", "create", "t", "--group", "root"], 2, ["--group", "--mode 0660"]),
    (["topic", "create", "t", "--revoke-after", "5"], 2, ["--revoke-after", "500ms"]),
    (["topic", "create", "t", "--evict-after", "0s"], 2, ["--evict-after", "500ms"]),
    (["topic", "info", "nothing"], 3, ["'nothing'", "topic list"]),
    (["topic", "info", "a b"], 2, ["'a b'"]),
    (["topic", "delete", "nothing"], 3, ["'nothing'"]),
    (["topic", "delete"], 2, ["NAME"]),
    (["topic", "delete", "fine", "a/b"], 2, ["'a/b'"]),
    (["rm"], 2, ["NAME"]),
    (["rm", "nothing"], 3, ["'nothing'"]),
    (["topic", "list", "extra"], 2, ["extra"]),
    (["pub"], 2, ["TOPIC"]),
    (["pub", "a/b"], 2, ["'a/b'"]),
    (["pub", "t", "--file", "/no/such/file"], 3, ["/no/such/file"]),
    (["pub", "t", "-l", "/"], 2, ["directory"]),
    (["pub", "t", "-l"], 2, ["--file needs a value", "leat pub --help"]),
    (["pub", "t", "-x"], 2, ["'-x'", "write -- before"]),
    (["pub", "t", "++"], 2, ["--", "'++'"]),
    (["pub", "t", "--file", "/dev/null", "text"], 2, ["MESSAGE", "--file", "exclude"]),
    (["pub", "t", "--file", "/dev/null", "-"], 2, ["'-'", "--file", "exclude"]),
    (["pub", "t", "a", "-", "b"], 2, ["'-'", "only MESSAGE"]),
    (["pub", "t", "a", "--null"], 2, ["MESSAGE", "--null", "exclude"]),
    (["pub", "t", "a", "--delimiter", ";"], 2, ["MESSAGE", "--delimiter", "exclude"]),
    (["pub", "t", "a", "--length-prefixed"], 2, ["MESSAGE", "--length-prefixed", "exclude"]),
    (["pub", "t", "--json", "--null"], 2, ["--json", "--null", "exclude"]),
    (["pub", "t", "--json", "--key-separator", ":"], 2, ["--json", "--key-separator", "exclude"]),
    (["pub", "t", "--null", "--length-prefixed"], 2, ["--null", "--length-prefixed", "exclude"]),
    (["pub", "t", "--delimiter", ""], 2, ["--delimiter", "one character"]),
    (["pub", "t", "--delimiter", "\\q"], 2, ["--delimiter", "'\\q'", "\\n"]),
    (["pub", "t", "--formt", "x"], 2, ["'--formt'"]),
    (["pub", "t", "--kye-separator", ":"], 2, ["did you mean '--key-separator'?"]),
    (["pub", "t", "--generate", "0", "--count", "1"], 2, ["--generate", "1 byte"]),
    (["pub", "t", "--generate", "9", "--count", "1", "text"], 2, ["--generate", "MESSAGE", "exclude"]),
    (["pub", "t", "--generate", "9", "--count", "1", "--json"], 2, ["--generate", "--json", "exclude"]),
    (["pub", "t", "--header", "novalue"], 2, ["--header", "novalue", "name=value"]),
    (["pub", "t", "--header", "=value"], 2, ["--header"]),
    (["pub", "t", "--generate", "100"], 2, ["--generate", "--count"]),
    (["pub", "t", "--generate", "big", "--count", "1"], 2, ["--generate", "'big'"]),
    (["pub", "t", "--count", "0"], 2, ["--count", "'0'"]),
    (["pub", "t", "--key-separator", ""], 2, ["--key-separator"]),
    (["pub", "t", "--partition", "x"], 2, ["--partition"]),
    (["sub"], 2, ["TOPIC"]),
    (["sub", "a/b"], 2, ["'a/b'"]),
    (["sub", "t", "--from", "middle"], 2, ["--from", "middle", "beginning"]),
    (["sub", "t", "--from", "-x"], 2, ["--from", "-10 for the last ten", "1h", "latest"]),
    (["sub", "t", "--from", "1d"], 2, ["--from", "'1d'"]),
    (["sub", "t", "--form", "end"], 2, ["'--form'", "did you mean '--from'?"]),
    (["sub", "t", "-n", "0"], 2, ["--count: '0'"]),
    (["sub", "a", "b", "--from", "3"], 2, ["OFFSET", "one topic"]),
    (["sub", "a", "b", "--group", "g"], 2, ["--group", "one topic"]),
    (["sub", "a", "b/c"], 2, ["'b/c'"]),
    (["sub", *(f"t{i}" for i in range(65))], 2, ["65", "64"]),
    (["sub", "typo", "--exit"], 3, ["'typo'", "topic list"]),
    (["sub", "typo", "--from", "beginning", "--exit"], 3, ["'typo'", "topic list"]),
    (["sub", "typo", "--group", "g", "--exit"], 3, ["'typo'", "topic list"]),
    (["sub", "t", "--from", "@yesterday"], 2, ["--from", "2024-05-01T12:00:00Z"]),
    (["sub", "t", "--from", "@2024-02-30T00:00:00Z"], 2, ["--from"]),
    (["sub", "t", "--count", "none"], 2, ["--count", "'none'"]),
    (["sub", "t", "--format", "%q"], 2, ["--format", "%q", "%s"]),
    (["sub", "t", "--format", "50%"], 2, ["--format", "%%"]),
    (["sub", "t", "--format", "\\q"], 2, ["--format", "\\n"]),
    (["sub", "t", "--format", "%s", "--json"], 2, ["--json"]),
    (["sub", "t", "-f", "%s", "-0"], 2, ["--format", "--null", "exclude"]),
    (["sub", "t", "--json", "--length-prefixed"], 2, ["--json", "--length-prefixed", "exclude"]),
    (["sub", "t", "--delimiter", "\\q"], 2, ["--delimiter", "\\n"]),
    (["demo", "--records", "0"], 2, ["--records"]),
    (["demo", "--runs", "many"], 2, ["--runs", "many"]),
    (["doctor", "--frobnicate"], 2, ["--frobnicate"]),
    (["topic", "list", "--dir"], 2, ["--dir"]),
    (["--dir", "", "topic", "list"], 2, ["--dir"]),
    (["--dir", "/no/such/place/at-all", "pub", "t"], 3, ["/no/such/place", "--dir"]),
    (["--dir", "/etc/passwd", "topic", "list"], 2, ["not a directory"]),
    *(([*command, "--dir", place], 4, [f"{place} is refused", "--dir"])
      for place in ("/", "/proc", "/sys", "/proc/self")
      for command in (["topic", "list"], ["topic", "create", "t"], ["pub", "t", "x"], ["sub", "t"],
                      ["topic", "info", "t"], ["rm", "t"], ["doctor"])),
], ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else str(value))
def test_bad_input_gets_one_line_and_a_code(leat, arguments, code, words):
    done = leat(*arguments)
    one_line(done, code, *words)
    assert done.stdout == ""
    assert list(leat.directory.glob("*")) == []  # Nothing was created.


@pytest.mark.parametrize("command", [["topic", "info", "nwes"], ["topic", "delete", "nwes"],
                                     ["rm", "nwes"], ["sub", "nwes", "--exit"],
                                     ["group", "list", "nwes"]], ids=" ".join)
def test_topic_with_a_name_like_the_one_that_is_missing_is_named(leat, command):
    for name in ("news", "orders"):
        leat("topic", "create", name, check=True)
    one_line(leat(*command), 3, "'nwes'", "did you mean 'news'?", "topic list")
    assert "did you mean" not in leat("topic", "info", "something-else").stderr


# --- create ---------------------------------------------------------------------------------------

def test_create_then_info_as_json_has_exactly_the_promised_keys(leat):
    assert "orders" in leat("topic", "create", "orders", check=True).stdout
    facts = info(leat, "orders")
    assert uuid.UUID(facts.pop("id")).version == 4
    assert abs(time.time() * 1000 - facts.pop("created_ms")) < 60_000
    assert facts == {"name": "orders", "policy": "block", "capacity_bytes": 8 << 20,
                     "total_capacity_bytes": 8 << 20, "used_bytes": 0, "segment_bytes": 1 << 20,
                     "max_record_bytes": 524_272, "retain_all": False, "single_writer": False,
                     "timestamps": False, "delete_when_unused": False, "durable": None,
                     "revoke_after_ns": None,
                     "evict_after_ns": None,
                     "partitions": [{"start": 0, "end": 0, "used_bytes": 0}],
                     "participants": [], "room_holders": [], "groups": []}


def test_create_understands_every_option(leat):
    leat("topic", "create", "o", "--capacity", "1MiB", "--segment-size", "64KiB", "--policy", "fail",
         "--partitions", "3", "--single-writer", "--timestamps", "--mode", "0660",
         "--group", "root" if os.geteuid() == 0 else str(os.getgid()), "--revoke-after", "500ms",
         "--evict-after", "2s", "--participants", "8", check=True)
    facts = info(leat, "o")
    assert facts["policy"] == "fail" and facts["capacity_bytes"] == 1 << 20
    assert len(facts["partitions"]) == 3 and facts["total_capacity_bytes"] == 3 << 20
    assert facts["segment_bytes"] == 64 << 10 and facts["max_record_bytes"] == (32 << 10) - 16
    assert facts["single_writer"] and facts["timestamps"] and not facts["retain_all"]
    assert facts["revoke_after_ns"] == 500_000_000 and facts["evict_after_ns"] == 2_000_000_000
    text = leat("topic", "info", "o", check=True).stdout
    for word in ("single writer", "timestamps", "64 KiB", "nobody is attached",
                 "claims revoked after 500ms", "subscribers evicted after 2s",
                 "1 MiB per partition, 3 MiB in all"):
        assert word in text
    leat("topic", "create", "all", "--retain", "all", check=True)
    assert info(leat, "all")["retain_all"] is True
    assert "retain all" in leat("topic", "info", "all", check=True).stdout
    assert (leat.directory / "o" / "records").stat().st_mode & 0o777 == 0o660


@pytest.mark.parametrize("text, size", [("1048576", 1 << 20), ("1MiB", 1 << 20), ("1M", 1 << 20),
                                        ("1mib", 1 << 20), ("1024KiB", 1 << 20), ("8192B", 8192)])
def test_sizes_are_written_in_many_ways(leat, text, size):
    leat("topic", "create", "t", "--capacity", text, check=True)
    assert info(leat, "t")["capacity_bytes"] == max(size, 8192)


def test_create_of_what_exists_is_refused(leat):
    leat("topic", "create", "t", check=True)
    one_line(leat("topic", "create", "t", "--capacity", "1MiB"), 3, "'t'", "exists")
    assert info(leat, "t")["capacity_bytes"] == 8 << 20


def test_of_many_racing_creators_one_wins(leat):
    racers = [leat.start("topic", "create", "race") for _ in range(8)]
    codes = sorted(racer.wait(30) for racer in racers)
    assert codes == [0] + [3] * 7


def test_longest_name_works(leat):
    name = "aB9._-" * 33 + "xy"
    assert len(name) == 200
    leat("topic", "create", name, check=True)
    assert info(leat, name)["name"] == name


def test_no_room_says_how_much_and_how_to_get_it(leat):
    done = leat("topic", "create", "t", "--capacity", "8GiB", "--partitions", "1000")
    one_line(done, 6, "7.8 TiB", "free", "mount -o remount,size=", "docker run --shm-size", "--dir")
    assert list(leat.directory.glob("*")) == []


def test_no_room_on_a_small_file_system(leat, as_root):
    mount = leat.directory / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", mount], check=True)
    try:
        done = leat("--dir", mount, "topic", "create", "t")
        one_line(done, 6, "8 MiB needed", "4 MiB free")
        one_line(leat("--dir", mount, "pub", "t", input="x\n"), 6, "8 MiB needed")
        assert [path.name for path in mount.iterdir() if path.name != "+lock"] == []
        leat("--dir", mount, "topic", "create", "t", "--capacity", "1MiB", check=True)
    finally:
        subprocess.run(["umount", mount], check=True)


# --- list and info --------------------------------------------------------------------------------

@pytest.mark.parametrize("command", [["topic", "list"], ["topic", "list", "--json"],
                                     ["topic", "info", "t"], ["topic", "delete", "t"], ["rm", "t"],
                                     ["group", "list", "t"], ["sub", "t", "--exit"]], ids=" ".join)
def test_mistyped_directory_is_not_empty_but_missing(leat, tmp_path, command):
    place = tmp_path / "mistyped"
    done = leat("--dir", place, *command)
    one_line(done, 3, f"no directory {place}", "--dir")
    assert done.stdout == "" and not place.exists()
    leat.environment["LEAT_DIR"] = str(place)
    one_line(leat(*command), 3, f"no directory {place}", "LEAT_DIR")


@pytest.mark.parametrize("command", [["topic", "create", "t"], ["pub", "t", "x"]], ids=" ".join)
def test_directory_that_is_made_is_named(leat, tmp_path, command):
    place = tmp_path / "new"
    said = leat("--dir", place, *command, check=True).stderr.splitlines()
    assert said[0] == f"leat: created directory {place}"
    assert leat("--dir", place, "topic", "list", check=True).stdout != ""
    assert "created directory" not in leat("--dir", place, "pub", "t", "x", check=True).stderr


def test_default_directory_may_be_missing(leat, as_root):
    user = 61235
    place = Path(f"/dev/shm/leat-{user}")
    assert not place.exists()
    try:
        done = run_as(leat, user, "topic", "list")
        assert (done.returncode, done.stderr.splitlines()[-1]) == (0, f"leat: no topics in {place}")
        assert not place.exists()
        assert run_as(leat, user, "topic", "create", "t").stderr == ""
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_dir_wins_over_the_environment_in_front_of_and_behind_the_command(leat, tmp_path):
    leat("--dir", tmp_path, "topic", "create", "a", check=True)
    leat("topic", "create", "b", "--dir", tmp_path, check=True)
    assert leat("topic", "list", check=True).stdout == ""
    listed = json.loads(leat("topic", "list", "--json", "--dir", tmp_path, check=True).stdout)
    assert [topic["name"] for topic in listed] == ["a", "b"]


def test_info_says_who_is_attached_and_who_blocks(leat):
    leat("topic", "create", "t", "--capacity", "64KiB", check=True)
    sub = leat.start("sub", "t", stdout=subprocess.DEVNULL)
    wait_until(lambda: info(leat, "t")["participants"])
    sub.send_signal(signal.SIGSTOP)
    pub = leat.start("pub", "t", "--generate", "100", "--count", "5000")
    wait_until(lambda: any(one["blocking"] for one in info(leat, "t")["participants"]))

    who = {one["role"]: one for one in info(leat, "t")["participants"]}
    assert set(who) == {"subscriber", "publisher"}
    assert who["subscriber"]["pid"] == sub.pid and who["publisher"]["pid"] == pub.pid
    end = info(leat, "t")["partitions"][0]["end"]
    assert who["subscriber"]["blocking"] and not who["publisher"]["blocking"]
    assert who["subscriber"]["offset"] + who["subscriber"]["lag"] == end
    assert set(who["subscriber"]) == {"pid", "role", "offset", "lag", "blocking"}
    assert who["publisher"]["offset"] is None and who["publisher"]["lag"] is None
    text = leat("topic", "info", "t", check=True).stdout
    assert re.search(rf"^ *{sub.pid}  subscriber .* yes$", text, re.M)

    sub.send_signal(signal.SIGCONT)
    assert pub.wait(30) == 0


def test_what_is_no_topic_is_refused_and_shown(leat):
    broken = leat.directory / "broken"
    broken.mkdir()
    (broken / "control").write_bytes(b"\0" * 8192)
    leat("topic", "create", "fine", check=True)
    for command in (["topic", "info", "broken"], ["sub", "broken", "--exit"], ["pub", "broken"],
                    ["topic", "create", "broken"], ["topic", "delete", "broken"]):
        one_line(leat(*command), 5, "'broken'")
    listed = json.loads(leat("topic", "list", "--json", check=True).stdout)
    assert listed[0]["name"] == "broken" and "error" in listed[0]
    assert listed[1]["name"] == "fine"
    assert "fine" in leat("topic", "list", check=True).stdout


@pytest.mark.parametrize("kind", ["file", "fifo", "link", "link to a topic", "directory"])
def test_what_is_no_topic_has_its_place_refused(leat, kind):
    place = leat.directory / "taken"
    leat("topic", "create", "real", check=True)
    if kind == "file":
        place.write_text("mine\n")
    elif kind == "fifo":
        os.mkfifo(place)
    elif kind == "directory":
        place.mkdir()
    else:
        place.symlink_to("nowhere" if kind == "link" else "real")
    before = place.lstat()
    for command in (["pub", "taken"], ["sub", "taken", "--exit"], ["topic", "info", "taken"],
                    ["topic", "create", "taken"], ["topic", "delete", "taken"],
                    ["topic", "delete", "--force", "taken"]):
        one_line(leat(*command, timeout=20), 5, "'taken'", "not a topic")
    assert place.lstat() == before
    leat("topic", "info", "real", check=True)


# --- delete ---------------------------------------------------------------------------------------

def test_delete_removes_the_topic_and_its_files(leat):
    leat("topic", "create", "t", check=True)
    leat("topic", "delete", "t", check=True)
    one_line(leat("topic", "info", "t"), 3, "'t'")
    assert [path.name for path in leat.directory.iterdir() if path.name != "+lock"] == []
    leat("topic", "create", "t", check=True)


@pytest.mark.parametrize("command", [["topic", "delete"], ["topic", "rm"], ["rm"]], ids=" ".join)
def test_delete_takes_several_topics(leat, command):
    for name in ("a", "b", "c"):
        leat("topic", "create", name, check=True)
    done = leat(*command, "a", "c", check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert [one["name"] for one in json.loads(leat("topic", "list", "--json").stdout)] == ["b"]


def test_delete_of_several_topics_goes_on_after_one_that_it_cannot_delete(leat):
    for name in ("a", "b", "c"):
        leat("topic", "create", name, check=True)
    sub = leat.start("sub", "b")
    wait_until(lambda: info(leat, "b")["participants"])
    done = leat("rm", "a", "missing", "b", "c")
    assert done.returncode == 3
    first, second = done.stderr.splitlines()
    assert "'missing'" in first and f"subscriber {sub.pid}" in second
    assert [one["name"] for one in json.loads(leat("topic", "list", "--json").stdout)] == ["b"]
    leat("rm", "-f", "b", check=True)
    assert sub.wait(20) == 3


def test_delete_of_a_topic_in_use_names_who_uses_it(leat):
    leat("topic", "create", "t", check=True)
    sub = leat.start("sub", "t")
    wait_until(lambda: info(leat, "t")["participants"])
    one_line(leat("topic", "delete", "t"), 3, f"subscriber {sub.pid}", "--force")
    assert sub.poll() is None

    leat("topic", "delete", "t", "--force", check=True)
    _, errors = sub.communicate(timeout=20)
    assert sub.returncode == 3 and errors == "leat: topic 't' was deleted\n"


def test_publisher_of_a_deleted_topic_is_told(leat):
    leat("topic", "create", "t", check=True)
    pub = leat.start("pub", "t")
    pub.stdin.write("first\n")
    pub.stdin.flush()
    wait_until(lambda: info(leat, "t")["partitions"][0]["end"] == 1)
    leat("topic", "delete", "t", "--force", check=True)
    _, errors = pub.communicate("second\n", timeout=20)
    assert pub.returncode == 3
    assert errors == "leat: topic 't' was deleted; 1 record was sent before\n"


def test_topic_of_the_dead_can_be_deleted(leat):
    sub = leat.start("sub", "t", "--from", "beginning")
    leat("pub", "t", input="x\n", check=True)
    wait_until(lambda: info(leat, "t")["participants"])
    sub.kill()
    sub.wait()
    leat("topic", "delete", "t", check=True)


# The second is its former name.
@pytest.mark.parametrize("option", ["--delete-when-unused", "--remove-when-unused"])
def test_topic_made_with_delete_when_unused_goes_with_its_last_user(leat, option):
    leat("topic", "create", "t", option, check=True)
    sub = leat.start("sub", "t")
    wait_until(lambda: info(leat, "t")["participants"])
    leat("pub", "t", input="x\n", check=True)
    assert info(leat, "t")["partitions"][0]["end"] == 1
    sub.terminate()
    sub.wait(20)
    wait_until(lambda: leat("topic", "info", "t").returncode == 3)


# --- Users ----------------------------------------------------------------------------------------

def test_user_without_the_right_gets_permission(leat, as_root):
    leat.directory.chmod(0o755)
    leat("topic", "create", "secret", check=True)
    for command in (["topic", "info", "secret"], ["sub", "secret", "--exit"], ["pub", "secret"]):
        one_line(run_as(leat, NOBODY, *command, directory=leat.directory), 4, "'secret'", "mode")


def test_mode_and_group_let_another_user_in(leat, as_root):
    leat.directory.chmod(0o755)
    group = subprocess.run(["getent", "group", str(NOBODY)], capture_output=True, text=True,
                           check=True).stdout.split(":")[0]
    leat("topic", "create", "open", "--mode", "0660", "--group", group, check=True)
    leat("pub", "open", input="hello\n", check=True)
    done = run_as(leat, NOBODY, "sub", "open", "--from", "beginning", "--exit",
                  directory=leat.directory)
    assert done.stdout == "hello\n", done.stderr


def test_default_directory_that_is_a_link_or_somebody_elses_is_refused(leat, as_root):
    user = 61234
    place = Path(f"/dev/shm/leat-{user}")
    assert not os.path.lexists(place)
    try:
        place.symlink_to(leat.directory)
        one_line(run_as(leat, user, "topic", "list"), 4, str(place), "--dir")
        place.unlink()
        place.mkdir(mode=0o777)
        one_line(run_as(leat, user, "topic", "list"), 4, str(place), "--dir")
        place.rmdir()
        assert run_as(leat, user, "topic", "create", "t").returncode == 0
        assert place.stat().st_uid == user and place.stat().st_mode & 0o777 == 0o700
    finally:
        if place.is_symlink():
            place.unlink()
        shutil.rmtree(place, ignore_errors=True)
