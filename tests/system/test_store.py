"""`leat dump` and `leat fsck` on the files of a durable topic: whole, damaged, half deleted, another
user's. If these failed, somebody whose disk went bad would be told nothing, or something wrong."""
import json
import os
import re
import shutil
import struct
import subprocess

import pytest

from test_cli import one_line

TOPIC = "orders"


def crc32c(data):
    """Bit by bit: independent of the code that is tested."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


@pytest.fixture
def data(leat, root, tmp_path):
    """A copy of the data directory that the first version of the format wrote."""
    path = tmp_path / "data"
    shutil.copytree(root / "tests" / "fixtures" / "store-1", path)
    leat.environment["LEAT_DATA_DIR"] = str(path)
    for file in (path / TOPIC).iterdir():
        file.chmod(0o600)
    return path


def segments(data):
    return sorted((data / TOPIC).glob("segment-*"))


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def set_version(path, version, crc_at=12):
    """Gives a manifest or checkpoint another version, with a right checksum."""
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, 8, version)
    struct.pack_into("<I", content, crc_at, 0)
    struct.pack_into("<I", content, crc_at, crc32c(content))
    path.write_bytes(content)


def test_dump_prints_every_record(leat, data):
    lines = leat("dump", TOPIC, check=True).stdout.split("\n")
    assert lines[:6] == ["0 0 time=1700000000000 key=anna colour=red size=12 first", "0 1 second",
                         "0 2 ", "0 3 fourth", "0 4 gap of 1: aborted", lines[5]]
    assert [line.split(" ")[:2] for line in lines[:-1]] == [["0", str(i)] for i in range(12)] + [["1", "0"]]


def test_dump_prints_a_range(leat, data):
    done = leat("dump", TOPIC, "--from", 2, "--to", 4, "--partition", 0, check=True)
    assert done.stdout == "0 2 \n0 3 fourth\n0 4 gap of 1: aborted\n"
    assert leat("dump", TOPIC, "--partition", 1, check=True).stdout.endswith(" key=bob hello\n")


def test_dump_from_beyond_the_end(leat, data):
    assert leat("dump", TOPIC, "--from", 12, check=True).stdout == ""  # Exactly at the end of partition 0.
    one_line(leat("dump", TOPIC, "--from", 13), 3, "--from 13", f"topic '{TOPIC}' ends before that")
    one_line(leat("dump", TOPIC, "--from", 2, "-p", 1), 3, f"partition 1 of topic '{TOPIC}'")


def test_dump_as_json_is_what_sub_prints(leat, data):
    lines = leat("dump", TOPIC, "--json", "-p", 0, check=True).stdout.splitlines()
    first = json.loads(lines[0])
    assert first == {"offset": 0, "partition": 0, "value": "first", "key": "anna",
                     "headers": {"colour": "red", "size": "12"}, "timestamp_ms": 1700000000000}
    assert json.loads(lines[4]) == {"gap": "aborted", "partition": 0, "offset": 4, "count": 1}
    assert json.loads(lines[5])["key_base64"] == "AP8="


def test_dump_in_hexadecimal(leat, data):
    done = leat("dump", TOPIC, "--hex", "--to", 0, "-p", 0, check=True)
    assert done.stdout == ("0 0 time=1700000000000 key=anna colour=red size=12 5 bytes\n"
                           "  00000000  66 69 72 73 74                                   |first|\n")


@pytest.mark.parametrize("later", [400, 1600])
def test_dump_goes_on_behind_files_that_retention_deletes_meanwhile(leat, tmp_path, later):
    leat.environment["LEAT_DATA_DIR"] = str(tmp_path / "data")
    leat("topic", "create", TOPIC, "--durable", "os", "--file-size", "64KiB", "--capacity", "64KiB",
         "--retention-bytes", "1MiB", check=True)
    leat("pub", TOPIC, "--generate", 1000, "--count", 800, check=True)
    dump = leat.start("dump", TOPIC)
    lines = [dump.stdout.readline()]  # It waits in the first files, for a pipe that is full.
    leat("pub", TOPIC, "--generate", 1000, "--count", later, check=True)
    lines += dump.stdout.readlines()
    assert dump.wait(timeout=60) == 0, dump.stderr.read()
    reached = 0
    gaps = []
    for line in lines:
        gap = re.fullmatch(r"0 (\d+) gap of (\d+): (.*)\n", line)
        assert int(line.split(" ")[1]) == reached
        reached += int(gap[2]) if gap else 1
        if gap:
            gaps.append(gap[3])
    assert gaps == ["overwritten"]
    # It ends where the records ended when it began, unless even these are gone.
    assert reached == 800 if later == 400 else reached > 800


def test_dump_ends_quietly_when_the_reader_goes(leat, data):
    process = leat.start("dump", TOPIC)
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=30) == 0
    assert process.stderr.read() == ""


def test_whole_topic_is_found_whole(leat, data):
    done = leat("fsck", TOPIC, check=True)
    assert done.stdout == "152.9 KiB in 4 files, 11 records: whole\n"
    report = json.loads(leat("fsck", TOPIC, "--json", check=True).stdout)
    assert report["ok"] and report["closed"] and report["findings"] == []
    assert (report["files"], report["records"], report["frames"]) == (4, 11, 7)


def test_damage_in_each_file_is_found_and_the_rest_is_read(leat, data):
    for file in sorted((data / TOPIC).iterdir()):
        if file.name == "lock":
            continue
        whole = file.read_bytes()
        for at in (9, 100, min(200, len(whole) - 1)):
            flip(file, at)
            done = leat("fsck", TOPIC)
            assert done.returncode == 5, f"{file.name}, byte {at}: {done}"
            assert file.name in done.stdout
            assert done.stderr == "leat: topic 'orders' is damaged; everything else can be read\n"
            dumped = leat("dump", TOPIC)
            assert dumped.returncode == 0, dumped.stderr
            for line in dumped.stdout.splitlines():
                assert "damaged" in line or re.match(r"\d \d+ ", line)
            file.write_bytes(whole)
    leat("fsck", TOPIC, check=True)


def test_damaged_frame_is_a_gap_and_what_follows_is_read(leat, data):
    flip(segments(data)[1], 20000)
    lines = leat("dump", TOPIC, "-p", 0, check=True).stdout.splitlines()
    assert "0 7 gap of 1: damaged" in lines
    assert lines[-1].endswith(" end")
    done = leat("fsck", TOPIC)
    assert "no whole frame at byte 128: offsets 7 to 7 can't be read" in done.stdout
    assert done.stdout.endswith("1 offsets damaged: damaged\n")


def test_repair_makes_copies_anew(leat, data):
    for name in ("manifest-0", "checkpoint-1"):
        flip(data / TOPIC / name, 40)
    assert leat("fsck", TOPIC).returncode == 5
    leat("fsck", TOPIC, "--repair", check=True)
    leat("fsck", TOPIC, check=True)


def test_repair_says_what_cannot_be_repaired(leat, data):
    flip(segments(data)[1], 20000)
    done = leat("fsck", TOPIC, "--repair")
    assert done.returncode == 5
    assert "can't be repaired" in done.stderr and done.stderr.count("\n") == 1
    assert leat("dump", TOPIC, "-p", 0).stdout.endswith(" end\n")


def test_repair_cuts_what_was_never_whole(leat, data):
    last = segments(data)[2]
    for checkpoint in (data / TOPIC).glob("checkpoint-*"):
        checkpoint.unlink()
    with last.open("ab") as file:
        file.write(b"LFRM and then the power failed")
    note = leat("fsck", TOPIC)
    assert note.returncode == 5 and "neither copy can be read" in note.stdout
    done = leat("fsck", TOPIC, "--repair", check=True)
    assert done.stderr == (f"leat: 30 bytes (0 records) at the end were never written whole; they are "
                           f"kept in {data}/{TOPIC}/cut-…\n")
    cut, = (data / TOPIC).glob("cut-*")
    assert cut.read_bytes() == b"LFRM and then the power failed"
    assert f"note     {cut.name}: what recovery cut off" in done.stdout
    assert leat("dump", TOPIC, "-p", 0, check=True).stdout.splitlines()[11].endswith(" end")


def test_topic_in_use_is_not_repaired(leat, data):
    script = (f"import fcntl, sys, time; f = open('{data}/{TOPIC}/lock', 'r+b'); "
              "import struct; fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 1, 0)); "
              "print('locked', flush=True); time.sleep(100)")
    holder = subprocess.Popen(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "locked\n"
        done = leat("fsck", TOPIC, "--repair")
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr == ("leat: topic 'orders' is open: end the processes that use it, then "
                               "repair it\n")
    finally:
        holder.kill()
        holder.wait()


def one_line(done, code, *words):
    assert done.returncode == code, done
    assert done.stdout == "" and done.stderr.startswith("leat: ") and done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize("command", ["dump", "fsck"])
def test_what_is_no_topic_gets_one_line(leat, data, command):
    one_line(leat(command, "other"), 3, "no durable topic 'other'", str(data))
    one_line(leat(command, "odrers"), 3, "no durable topic 'odrers'", "(did you mean 'orders'?)")
    one_line(leat(command, "a/b"), 2, "'a/b'")
    (data / "empty").mkdir()
    one_line(leat(command, "empty"), 5, "no manifest")
    leat.environment["LEAT_DATA_DIR"] = str(data / "nowhere")
    one_line(leat(command, TOPIC), 3, "there is no directory", "--data-dir")
    one_line(leat(command, TOPIC, "--data-dir", ""), 2, "--data-dir")
    leat(command, TOPIC, "--data-dir", data, check=True)


@pytest.mark.parametrize("command", ["dump", "fsck"])
def test_newer_version_gets_one_line(leat, data, command):
    for name in ("manifest-0", "checkpoint-0"):
        file = data / TOPIC / name
        whole = file.read_bytes()
        set_version(file, 2)
        one_line(leat(command, TOPIC), 5, "newer version of Leat")
        file.write_bytes(whole)
    leat(command, TOPIC, check=True)


@pytest.mark.parametrize("command", ["dump", "fsck"])
def test_newer_segment_file_gets_one_line(leat, data, command):
    file = segments(data)[0]
    content = bytearray(file.read_bytes())
    struct.pack_into("<II", content, 8, 2, 0)
    struct.pack_into("<I", content, 12, crc32c(content[:128]))
    file.write_bytes(content)
    one_line(leat(command, TOPIC), 5, "newer version of Leat")


def test_both_checkpoints_missing_are_told_once(leat, data):
    for checkpoint in (data / TOPIC).glob("checkpoint-*"):
        checkpoint.unlink()
    lines = leat("fsck", TOPIC).stdout.splitlines()
    assert [line for line in lines if "checkpoint" in line] == [
        "damaged  checkpoint: neither copy can be read: recovery has to read all files"]


def test_half_deleted_topics(leat, data):
    topic = data / TOPIC
    (topic / "manifest-0").unlink()
    assert "manifest-0: it is missing; the other copy is used" in leat("fsck", TOPIC).stdout
    leat("fsck", TOPIC, "--repair", check=True)
    segments(data)[1].unlink()
    done = leat("fsck", TOPIC)
    assert done.returncode == 5 and "offsets 7 to 8 can't be read" in done.stdout, done
    assert leat("dump", TOPIC, "-p", 0).stdout.splitlines()[-1].endswith(" end")
    for manifest in topic.glob("manifest-*"):
        flip(manifest, 40)
    one_line(leat("fsck", TOPIC), 5, "both copies of the manifest", "are damaged")


def test_another_users_files(leat, data, as_root):
    """Run as a user who may enter the directories, but not read the files."""
    for path in (data.parent, data, data / TOPIC):
        path.chmod(0o755)
    for path in data.parents:
        if path.stat().st_uid == 0 and str(path).startswith("/tmp/"):
            path.chmod(0o755)
    for command in ("dump", "fsck"):
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               leat.executable, command, TOPIC], env=leat.environment,
                              capture_output=True, text=True, timeout=60)
        one_line(done, 4, "no permission for the files of topic 'orders'")


def test_read_only_file_system(leat, data, as_root):
    subprocess.run(["mount", "--bind", data, data], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", data], check=True)
        leat("fsck", TOPIC, check=True)
        assert leat("dump", TOPIC, check=True).stdout
        one_line(leat("fsck", TOPIC, "--repair"), 4, f"the file system of {data / TOPIC} is read-only")
    finally:
        subprocess.run(["umount", data], check=True)


@pytest.mark.parametrize("arguments", [
    ("dump",), ("dump", TOPIC, "--hex", "--json"), ("dump", TOPIC, "--from", "x"),
    ("dump", TOPIC, "--from", 5, "--to", 4), ("dump", TOPIC, "--partition", 2), ("fsck",),
    ("fsck", TOPIC, "--mend")])
def test_wrong_options_get_one_line(leat, data, arguments):
    one_line(leat(*arguments), 2)
