"""A disk that fails, and files that are missing or in another place: a command names what it is."""
import os
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def failing_readdir(leat, tmp_path):
    """A file; while it exists, reading a directory that has a segment file ends with EIO at that file."""
    source = tmp_path / "failing.c"
    source.write_text(f'''#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
struct dirent* readdir(DIR* stream) {{
  static struct dirent* (*real)(DIR*);
  if (!real) real = (struct dirent * (*)(DIR*)) dlsym(RTLD_NEXT, "readdir");
  struct dirent* entry = real(stream);
  if (!entry || strncmp(entry->d_name, "segment-", 8) != 0 || access("{tmp_path}/fail", F_OK) != 0) return entry;
  errno = EIO;
  return NULL;
}}
''')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "failing.so", source, "-ldl"], check=True)
    leat.environment["LD_PRELOAD"] = str(tmp_path / "failing.so")
    return tmp_path / "fail"


def test_a_directory_that_cannot_be_read_to_its_end_is_an_error(leat, tmp_path, failing_readdir):
    leat.environment["LEAT_DATA_DIR"] = str(tmp_path / "data")
    leat("topic", "create", "orders", "--durable", "os", "--file-size", "64KiB", check=True)
    leat("pub", "orders", "--generate", "1000", "--count", "300", check=True)
    files = {path.name: path.read_bytes() for path in (tmp_path / "data" / "orders").iterdir()}
    failing_readdir.touch()
    for command in (["fsck", "orders"], ["dump", "orders"], ["sub", "orders", "--from", "beginning", "--exit"],
                    ["pub", "orders", "new"], ["backup", "orders", str(tmp_path / "copy")]):
        refused = leat(*command)
        assert refused.returncode != 0 and refused.stdout == "", (command, refused)
        assert "Input/output error" in refused.stderr, (command, refused)
    assert not (tmp_path / "copy").exists()
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "data" / "orders").iterdir()}
    failing_readdir.unlink()
    assert "300 records" in leat("fsck", "orders", check=True).stdout
    assert len(leat("sub", "orders", "--from", "beginning", "--exit", check=True).stdout.splitlines()) == 300


def test_a_missing_lock_is_named_and_made_anew(leat, tmp_path):
    leat.environment["LEAT_DATA_DIR"] = str(tmp_path / "data")
    leat("topic", "create", "orders", "--durable", "os", check=True)
    leat("pub", "orders", "a", "b", check=True)
    (tmp_path / "data" / "orders" / "lock").unlink()
    refused = leat("sub", "orders", "--from", "beginning", "--exit")
    assert refused.returncode == 5 and "leat fsck orders" in refused.stderr
    found = leat("fsck", "orders")
    assert found.returncode == 5 and "lock: it is missing" in found.stdout
    leat("fsck", "--repair", "orders", check=True)
    assert leat("sub", "orders", "--from", "beginning", "--exit", check=True).stdout == "a\nb\n"


def test_what_is_no_file_is_named(leat, tmp_path):
    leat.environment["LEAT_DATA_DIR"] = str(tmp_path / "data")
    leat("topic", "create", "orders", "--durable", "os", check=True)
    leat("pub", "orders", "a", "b", check=True)
    files = tmp_path / "data" / "orders"
    segment = next(files.glob("segment-*")).name
    moved = tmp_path / "moved"
    makers = [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(moved)]
    for name in ("lock", "manifest-0", "checkpoint-1", segment):
        (files / name).rename(moved)
        for make in makers:
            make(files / name)
            for command in (["fsck", "orders"], ["fsck", "--repair", "orders"], ["fsck", "--json", "orders"]):
                refused = leat(*command)
                assert refused.returncode == 5, (name, refused)
                text = refused.stderr if name != "lock" or "--repair" in command else refused.stdout
                assert name in text and "not a regular file" in text, (name, refused)
            if (files / name).is_dir() and not (files / name).is_symlink():
                (files / name).rmdir()
            else:
                (files / name).unlink()
        moved.rename(files / name)
    leat("fsck", "orders", check=True)
    assert leat("sub", "orders", "--from", "beginning", "--exit", check=True).stdout == "a\nb\n"


def test_a_link_in_place_of_a_topic_is_named(leat, tmp_path):
    leat.environment["LEAT_DATA_DIR"] = str(tmp_path / "data")
    leat("topic", "create", "orders", "--durable", "os", check=True)
    (tmp_path / "data" / "orders").rename(tmp_path / "orders")
    (tmp_path / "data" / "orders").symlink_to(tmp_path / "orders")
    for command in (["pub", "orders", "x"], ["sub", "orders", "--exit"], ["fsck", "orders"], ["dump", "orders"]):
        refused = leat(*command)
        assert refused.returncode == 5 and "symbolic links are not followed" in refused.stderr, refused
