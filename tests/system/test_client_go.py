"""If this failed, a Go program could crash, hang, or lose records where a C++ program does not."""
import os
import subprocess

from conftest import EXECUTABLE, ROOT

BUILD = ROOT / "build"


def go(*arguments, where, directory, **variables):
    """Runs Go without a network."""
    environment = dict(os.environ, LEAT_DIR=str(directory), GOPROXY="off", GOTOOLCHAIN="local",
                       GOCACHE=str(BUILD / "clients" / "go.cache"), CGO_ENABLED="1",
                       CGO_CFLAGS=f"-O2 -g -I{BUILD / 'capi'}",
                       CGO_LDFLAGS=f"-L{BUILD} -Wl,-rpath,{BUILD}", **variables)
    return subprocess.run(["go", *arguments], cwd=where, env=environment, capture_output=True,
                          text=True, timeout=290, check=False)


def test_its_own_tests_pass(leat_dir):
    ran = go("test", "-count=1", "./...", where=ROOT / "clients/go", directory=leat_dir)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


def test_the_example_talks_to_the_executable(leat_dir):
    ran = go("run", ".", where=ROOT / "examples/clients/go", directory=leat_dir)
    assert ran.returncode == 0, ran.stderr
    seen = subprocess.run([EXECUTABLE, "sub", "greetings", "--from", "beginning", "--exit"],
                          env=dict(os.environ, LEAT_DIR=str(leat_dir)), capture_output=True, text=True,
                          timeout=60, check=False)
    assert "hello from Go" in seen.stdout
