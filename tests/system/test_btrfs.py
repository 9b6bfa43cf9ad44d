"""If these tests failed, a full disk could end programs by SIGBUS where the file system copies on write."""
import fcntl
import lzma
import os
import struct
import subprocess
import time

import pytest

from conftest import ROOT

IMAGE = ROOT / "tests" / "fixtures" / "btrfs-1" / "image.xz"  # mkfs.btrfs -m single, of 48 MiB
GET_FLAGS, NO_COPY_ON_WRITE = 0x80086601, 0x00800000  # linux/fs.h
LINES = "".join(f"{i:>8000}\n" for i in range(50))  # More than the topic takes. Few: each is slow on a full disk.


@pytest.fixture
def btrfs(as_root, tmp_path):
    if "\tbtrfs\n" not in open("/proc/filesystems").read():
        pytest.skip("this kernel has no btrfs")
    image, mount = tmp_path / "image", tmp_path / "mount"
    mount.mkdir()
    with lzma.open(IMAGE) as packed, open(image, "wb") as file:
        while part := packed.read(1 << 16):
            if part.strip(b"\0"):
                file.write(part)
            else:
                file.seek(len(part), os.SEEK_CUR)
        file.truncate()
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    yield mount
    subprocess.run(["umount", "-l", mount], check=True)


def fill(mount):
    with open(mount / "filler", "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 16, 1 << 12):
            try:
                while file.write(b"f" * size):
                    pass
            except OSError:
                pass
        try:
            os.fsync(file.fileno())
        except OSError:
            pass


def test_a_full_disk_ends_nobody(leat, btrfs):
    here = ("--dir", btrfs)
    leat("topic", "create", "t", "--capacity", "256KiB", "--policy", "overwrite", *here, check=True)
    leat("pub", "t", *here, input=LINES, check=True)
    subprocess.run(["sync", "-f", btrfs], check=True)  # Now a change of a page would need a new place.
    fill(btrfs)
    done = leat("pub", "t", *here, input=LINES, timeout=120)
    assert done.returncode == 0, done.stderr


def test_all_files_are_written_in_place(leat, btrfs):
    here = ("--dir", btrfs)
    leat("topic", "create", "t", "--capacity", "512KiB", *here, check=True)
    member = leat.start("sub", "t", "--group", "g", *here)
    deadline = time.monotonic() + 10
    while not list((btrfs / "t").glob("group-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    member.terminate()
    member.wait()
    names = []
    for path in (btrfs / "t").iterdir():
        names.append(path.name[:6])
        with open(path, "rb") as file:
            flags, = struct.unpack("l", fcntl.ioctl(file, GET_FLAGS, struct.pack("l", 0)))
        assert flags & NO_COPY_ON_WRITE, path.name
    assert sorted(names) == ["contro", "group-", "record"]
