"""If this failed, a Go program could crash, hang, or lose records where a C++ program does not."""
import os
import shutil
import subprocess

import pytest
from conftest import ROOT, run

BUILD = ROOT / "build"


def go(*arguments, where, directory, **variables):
    """Runs Go without a network."""
    environment = dict(os.environ, LEAT_DIR=str(directory), GOPROXY="off", GOTOOLCHAIN="local",
                       GOCACHE=str(BUILD / "clients" / "go.cache"), CGO_ENABLED="1",
                       **(variables or {"CGO_CFLAGS": f"-O2 -g -I{BUILD / 'capi'}",
                                        "CGO_LDFLAGS": f"-L{BUILD} -Wl,-rpath,{BUILD}"}))
    return subprocess.run(["go", *arguments], cwd=where, env=environment, capture_output=True,
                          text=True, timeout=290, check=False)


def test_its_own_tests_pass(leat_dir):
    ran = go("test", "-count=1", "./...", where=ROOT / "clients/go", directory=leat_dir)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


@pytest.mark.skipif("c" not in run.chosen(), reason="CLIENTS leaves out the packages of C, which it needs")
def test_the_module_installs_into_an_empty_place(leat, tmp_path):
    """As README.md says, beside the C library of the Debian packages."""
    for package in (BUILD / "clients").glob("libleat*.deb"):
        subprocess.run(["dpkg", "-x", package, tmp_path / "debian"], timeout=60, check=True)
    shutil.unpack_archive(BUILD / "clients/go-leat.zip", tmp_path)
    shutil.copy(ROOT / "examples/clients/go/main.go", tmp_path)
    own = {"CGO_CFLAGS": f"-I{tmp_path}/debian/usr/include", "CGO_LDFLAGS": f"-L{tmp_path}/debian/usr/lib -lleat",
           "LD_LIBRARY_PATH": str(tmp_path / "debian/usr/lib")}
    for command in (["mod", "init", "hello"], ["mod", "edit", "-require=leat@v0.0.0", "-replace=leat=./leat"],
                    ["build"]):
        ran = go(*command, where=tmp_path, directory=leat.directory, **own)
        assert ran.returncode == 0, ran.stderr
    environment = dict(os.environ, LEAT_DIR=str(leat.directory), **own)
    said = subprocess.run([tmp_path / "hello"], env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout == "hello from Go\n"
    assert leat("sub", "greetings", "--from", "beginning", "--exit").stdout == "hello from Go\n"
