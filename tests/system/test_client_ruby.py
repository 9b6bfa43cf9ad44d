"""If this failed, a program in Ruby could crash, hang, lose records, or not find the library in its gem."""
import fcntl
import os
import subprocess

import pytest
from conftest import ROOT

BUILD = ROOT / "build"
CLIENT = ROOT / "clients" / "ruby"
RUBY = "/usr/bin/ruby"


@pytest.fixture(scope="module")
def library():
    """Where `require "leat"` finds the client. Built if it is not there, by one of the processes that test."""
    built = BUILD / "clients" / "ruby" / "lib"
    (BUILD / "clients").mkdir(parents=True, exist_ok=True)
    with open(BUILD / "clients" / "ruby.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (built / "leat" / "leat.so").exists():
            subprocess.run([CLIENT / "build.sh", BUILD], check=True, timeout=200)
    return built


def test_client_ruby(library):
    ran = subprocess.run([RUBY, f"-I{library}", CLIENT / "tests" / "all.rb"], capture_output=True, text=True,
                         timeout=250, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_gem_installs_without_network_and_compiler(library, leat, tmp_path):
    [gem] = (library.parent.parent).glob("leat-*.gem")
    where = tmp_path / "gems"
    subprocess.run([RUBY, "-S", "gem", "install", "--local", "--no-document", "--install-dir", where, gem],
                   capture_output=True, timeout=100, check=True)
    environment = dict(os.environ, LEAT_DIR=str(leat.directory), GEM_PATH=str(where))
    ran = subprocess.run([RUBY, ROOT / "examples" / "clients" / "ruby.rb"], capture_output=True, text=True, timeout=60,
                         env=environment, check=False)
    assert (ran.stdout, ran.stderr) == ("hello from Ruby\n", "")
    assert leat("sub", "greetings", "--from", "beginning", "--exit").stdout == "hello from Ruby\n"


def test_ri_shows_options(library, tmp_path):
    subprocess.run([RUBY, "-S", "rdoc", "--quiet", "--ri", "--output", tmp_path / "ri", library], check=True, timeout=100,
                   capture_output=True)
    for method, wanted in (("Leat::Topic::create", "grow_below_bytes:"), ("Leat::Publisher#publish", "headers: nil"),
                           ("Leat::Topic#subscriber", "gating:")):
        shown = subprocess.run([RUBY, "-S", "ri", "--no-standard-docs", "--doc-dir", tmp_path / "ri", "--format=markdown",
                                "--no-pager", method], capture_output=True, text=True, timeout=60, check=False)
        assert wanted in shown.stdout, shown.stdout + shown.stderr


def test_only_the_entry_is_exported(library):
    names = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library / "leat" / "leat.so"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    assert [name.split()[0] for name in names if name] == ["Init_leat"]
