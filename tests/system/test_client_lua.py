"""If this failed, a program in Lua or LuaJIT could crash, hang, lose records, or not find the library in its rock."""
import fcntl
import os
import random
import signal
import subprocess
import time
import zipfile

import pytest
from conftest import ROOT

BUILD = ROOT / "build"
CLIENT = ROOT / "clients" / "lua"
VERSIONS = {"lua5.4": "5.4", "luajit": "5.1"}


@pytest.fixture(scope="module")
def built():
    """Where the modules are. Built if they are not there, by one of the processes that test."""
    where = BUILD / "clients" / "lua"
    (BUILD / "clients").mkdir(parents=True, exist_ok=True)
    with open(BUILD / "clients" / "lua.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all((where / version / "leat.so").exists() for version in VERSIONS.values()):
            subprocess.run([CLIENT / "build.sh", BUILD], check=True, timeout=200)
    return where


def environment_of(built, leat_dir, interpreter):
    return dict(os.environ, LEAT_DIR=str(leat_dir), LEAT_DATA_DIR=str(leat_dir / "data"),
                LUA_CPATH=f"{built}/{VERSIONS[interpreter]}/?.so")


@pytest.mark.parametrize("interpreter", VERSIONS)
def test_client_lua(built, leat_dir, interpreter):
    ran = subprocess.run([interpreter, CLIENT / "tests" / "all.lua"], capture_output=True, text=True, timeout=250,
                         env=environment_of(built, leat_dir, interpreter), check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("interpreter", VERSIONS)
def test_example_talks_to_the_executable(built, leat, leat_dir, interpreter):
    ran = subprocess.run([interpreter, ROOT / "examples" / "clients" / "lua.lua"], capture_output=True, text=True,
                         timeout=60, env=environment_of(built, leat_dir, interpreter), check=True)
    assert ran.stdout == "hello from Lua\n"
    assert leat("sub", "greetings", "--from", "beginning", "--exit").stdout == "hello from Lua\n"


WAIT = """
local leat = require "leat"
local topic = assert(leat.open_or_create("topic"))
local subscriber, member = assert(topic:subscriber()), assert(topic:group("workers"):join())
print("ready") io.stdout:flush()
local is_done, failed = pcall(function()
  for i = 1, tonumber(arg[1]) do local x = i * i end
  %s
end)
print(tostring(failed)) os.exit(0)
"""
CALLS = ["subscriber:receive()", "member:receive()", "subscriber:wait()", "leat.wait_any({subscriber})",
         "leat.open('nothing', {timeout = false})",
         # Lua 5.4 has hooks of its own for each coroutine.
         "local _, _, failed = coroutine.resume(coroutine.create(function() return subscriber:receive() end)) "
         "error(failed and failed.name or 'interrupted!')"]


@pytest.mark.parametrize("interpreter, rounds", [("lua5.4", 200), ("luajit", 100)])
def test_control_c_ends_a_wait(built, leat_dir, tmp_path, interpreter, rounds):
    """At random moments: before it, in it, between its slices."""
    environment = environment_of(built, leat_dir, interpreter)
    scripts = []
    for number, call in enumerate(CALLS):
        scripts.append(tmp_path / f"{number}.lua")
        scripts[-1].write_text(WAIT % call, encoding="utf-8")
    for _ in range(rounds):
        with subprocess.Popen([interpreter, random.choice(scripts), str(random.randrange(100_000))],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=environment) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(random.random() * 0.02)
            started = time.monotonic()
            process.send_signal(signal.SIGINT)
            said = process.stdout.read()
            # 100 ms, if other processes do not keep it from running.
            assert time.monotonic() - started < 5
        assert "interrupted" in said


def test_rock_has_the_module_and_says_so(built, tmp_path):
    [rock] = built.parent.glob("leat-*.rock")
    with zipfile.ZipFile(rock) as unpacked:
        unpacked.extractall(tmp_path)
    assert (tmp_path / "lib" / "leat.so").read_bytes() == (built / "5.4" / "leat.so").read_bytes()
    [rockspec] = tmp_path.glob("*.rockspec")
    check = "dofile(arg[1]) dofile(arg[2]) print(package, rock_manifest.lib['leat.so'])"
    # A rockspec assigns to `package`.
    (tmp_path / "check.lua").write_text(check, encoding="utf-8")
    ran = subprocess.run(["lua5.4", tmp_path / "check.lua", rockspec, tmp_path / "rock_manifest"], capture_output=True,
                         text=True, check=True)
    assert ran.stdout.startswith("leat\t")


@pytest.mark.parametrize("version", VERSIONS.values())
def test_only_the_entry_is_exported(built, version):
    names = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", built / version / "leat.so"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    assert [name.split()[0] for name in names if name] == ["luaopen_leat"]
