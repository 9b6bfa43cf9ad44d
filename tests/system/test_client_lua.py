"""If this failed, a program in Lua or LuaJIT could crash, hang, lose records, or not find the library in its rock."""
import fcntl
import os
import random
import signal
import subprocess
import time
import zipfile
from pathlib import Path

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
        if not all((where / version / name).exists() for version in VERSIONS.values() for name in ("leat.so", "malloc.so")):
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


# Begins to wait at a random moment. With seconds, waits again and again: a signal then also comes after a wait.
WAIT = """
local leat = require "leat"
local topic = assert(leat.open_or_create("topic"))
local subscriber, member = assert(topic:subscriber()), assert(topic:group("workers"):join())
%s
local seconds = tonumber(arg[2])
print("ready") io.stdout:flush()
local is_done, failed = pcall(function()
  for i = 1, tonumber(arg[1]) do local x = i * i end
  repeat %s until not seconds
end)
print(tostring(failed)) io.stdout:flush()
os.exit(0)
"""
# For those of a durable topic. To end a process that has one takes long.
DURABLE = """
local kept = assert(leat.open_or_create("kept", {durable = "os"}))
local open_claim, flusher = assert(kept:publisher():claim(9)), assert(kept:publisher())
assert(flusher:publish("x")) -- Not durable before the claim ends.
"""
CALLS = ["subscriber:receive(seconds)", "member:receive(seconds)", "subscriber:wait(seconds)",
         "leat.wait_any({subscriber}, seconds)", "leat.open('nothing', {timeout = seconds or false})",
         "kept:repair(seconds)", "flusher:flush(seconds)",
         # Lua 5.4 has hooks of its own for each coroutine.
         "local is_right, said, failed = coroutine.resume(coroutine.create(function() "
         "return subscriber:receive(seconds) end)) "
         "if not is_right or failed.name ~= 'timeout' then error(is_right and failed.name or said) end"]


def seconds_without_cpu(task):
    """How long a process was ready to run, and others ran."""
    return int(Path(f"/proc/{task}/schedstat").read_text(encoding="utf-8").split()[1]) / 1e9


def press_control_c(process):
    """How many seconds later its wait has ended, without those in which this machine let others run."""
    tasks = (process.pid, "thread-self")
    held_up, started = sum(map(seconds_without_cpu, tasks)), time.monotonic()
    os.kill(process.pid, signal.SIGINT)  # What has ended stays until it was asked.
    said = process.stdout.readline()
    took = time.monotonic() - started - (sum(map(seconds_without_cpu, tasks)) - held_up)
    assert "interrupted" in said
    return took


@pytest.mark.parametrize("interpreter", VERSIONS)
def test_control_c_ends_a_wait(built, leat_dir, tmp_path, interpreter):
    """At 200 random moments: before it, in it, between its slices, after it. Each ends within 100 ms."""
    environment = environment_of(built, leat_dir, interpreter)
    scripts = []
    for number, call in enumerate(CALLS):
        scripts.append(tmp_path / f"{number}.lua")
        scripts[-1].write_text(WAIT % (DURABLE if "kept" in call or "flusher" in call else "", call), encoding="utf-8")
    for number in range(200):
        again = [str(random.random() * 0.002)] if number % 2 else []
        with subprocess.Popen([interpreter, scripts[number // 2 % len(CALLS)], str(random.randrange(100_000)), *again],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=environment) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(random.random() * 0.01)
            assert press_control_c(process) < 0.1, process.args


@pytest.mark.parametrize("call", ["leat.open('nothing', {timeout = false})", "kept:repair()",
                                  "kept:subscriber():receive()"])
@pytest.mark.parametrize("interpreter", VERSIONS)
def test_control_c_ends_a_wait_whose_sleeps_have_become_long(built, leat_dir, tmp_path, interpreter, call):
    """In the quickest of three tries: the machine may hold up the process."""
    script = tmp_path / "wait.lua"
    script.write_text(f"local leat = require 'leat' local kept = leat.open_or_create('kept', {{durable = 'os'}})\n"
                      "local claim = kept:publisher():claim(9)  -- Nothing later becomes durable.\n"
                      f"print('ready') io.stdout:flush() {call}", encoding="utf-8")
    environment = dict(environment_of(built, leat_dir, interpreter), LEAT_DATA_DIR=str(tmp_path))

    def interrupt():
        with subprocess.Popen([interpreter, script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=environment) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.2)
            return press_control_c(process)

    assert any(interrupt() < 0.1 for _ in range(3))


# Holds a record and a claim, starts a child, and is killed.
HOLDER = """
local leat = require "leat"
local topic = assert(leat.open("topic"))
local publisher, member = topic:publisher(), topic:find_group("workers"):join()
assert(member:receive(30))
local claim = assert(publisher:claim(8))
%s
io.stdout:flush()
topic:subscriber():receive()
"""
# Waits for what becomes of them.
HEIR = """
local leat = require "leat"
local topic = assert(leat.open("topic"))
local subscriber, member = topic:subscriber({from = {offset = 1}}), topic:find_group("workers"):join()
print("ready") io.stdout:flush()
local gap = subscriber:receive(30)
print(gap.reason, gap.offset)
local again = member:receive(30)
print(again.value, again.deliveries)
"""
CHILDREN = {"execute": "os.execute('sleep 60 >/dev/null & echo $!')",
            "popen": "print(io.popen('sleep 60 >/dev/null & echo $!'):read())"}


@pytest.mark.parametrize("how", CHILDREN)
@pytest.mark.parametrize("interpreter", VERSIONS)
def test_a_child_keeps_nothing_of_its_parent_alive(built, leat, tmp_path, interpreter, how):
    environment = environment_of(built, leat.directory, interpreter)

    def start(name, text):
        script = tmp_path / name
        script.write_text(text, encoding="utf-8")
        process = subprocess.Popen([interpreter, script], stdout=subprocess.PIPE, text=True, env=environment,
                                   start_new_session=True)
        leat.started.append(process)
        return process

    setup = "t = require('leat').create('topic') t:group('workers', {from = 'beginning'}) t:publisher():publish('mine')"
    subprocess.run([interpreter, "-e", setup], env=environment, check=True, timeout=60)
    holder = start("holder.lua", HOLDER % CHILDREN[how])
    child = int(holder.stdout.readline())
    heir = start("heir.lua", HEIR)
    assert heir.stdout.readline() == "ready\n"
    name = Path(f"/proc/{child}/comm")
    while name.read_text(encoding="utf-8") != "sleep\n":
        time.sleep(0.001)
    holder.kill()
    killed = time.monotonic()
    assert heir.stdout.read() == "died\t1\nmine\t2\n"
    assert time.monotonic() - killed < 10
    assert name.read_text(encoding="utf-8") == "sleep\n"  # It has outlived its parent.


@pytest.mark.parametrize("interpreter", VERSIONS)
def test_threads_have_states_of_their_own(built, leat_dir, tmp_path, interpreter):
    """Two at once; and a collector on another thread than what it closes."""
    library, include = {"lua5.4": ("lua5.4", "lua5.4"), "luajit": ("luajit-5.1", "luajit-2.1")}[interpreter]
    program = tmp_path / "threads"
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", f"-I/usr/include/{include}", "-o", program,
                    CLIENT / "tests" / "threads.c", f"-l{library}", "-lpthread"], check=True, timeout=100)
    ran = subprocess.run([program], capture_output=True, text=True, timeout=100, check=False,
                         env=environment_of(built, leat_dir, interpreter))
    assert ran.returncode == 0, ran.stderr


def test_rock_has_the_module_and_says_so(built, leat, tmp_path):
    """The example runs with nothing but what is in it."""
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
    own = dict(leat.environment, LUA_CPATH=f"{tmp_path}/lib/?.so", LUA_PATH="")
    ran = subprocess.run(["lua5.4", ROOT / "examples/clients/lua.lua"], cwd=tmp_path, env=own, capture_output=True,
                         text=True, timeout=60, check=False)
    assert (ran.stdout, ran.stderr) == ("hello from Lua\n", "")
    assert leat("sub", "greetings", "--from", "beginning", "--exit").stdout == "hello from Lua\n"


@pytest.mark.parametrize("version", VERSIONS.values())
def test_only_the_entry_is_exported(built, version):
    names = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", built / version / "leat.so"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    assert [name.split()[0] for name in names if name] == ["luaopen_leat"]
