"""If these tests failed, programs written for LightQ's C functions would not compile or run with libleat-lightq, would lose
messages without being told, or could be crashed by what they are given."""
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from broker import WAIT_SECONDS, free_ports, take, wait_for
from test_pub_sub import Reader

FUNCTIONS = {"init_log", "set_loglevel", "init_producer", "free_producer_conn", "publish_message",
             "init_consumer", "free_consumer_conn", "receive_message", "get_stats",
             "publish_delay_algorithm", "init_broker", "free_broker_mgr", "run_broker", "create_topic",
             "str_to_loglevel", "get_current_time_millsec", "generate_random_string", "sleep_ms"}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes", "-Werror"]
SECRET = "Granat-Kolibri-77"


@pytest.fixture(scope="module")
def build(request):
    from conftest import EXECUTABLE
    directory = EXECUTABLE.parent
    assert (directory / "libleat-lightq.so").exists(), "build leat_lightq_shared first"
    return directory


def compiled(request, build, tmp_path_factory, kind):
    root = request.config.rootpath
    path = tmp_path_factory.mktemp(kind) / "program"
    libraries = [f"-L{build}", "-lleat-lightq", f"-Wl,-rpath,{build}"]
    if kind == "static":
        libraries = [build / "libleat-lightq.a", "-lstdc++", "-lm", "-pthread"]
    subprocess.run(["gcc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", *WARNINGS, f"-I{root}/include",
                    root / "tests/system/lightq_api.c", *libraries, "-o", path], check=True)
    return path


@pytest.fixture(scope="module")
def shared(request, build, tmp_path_factory):
    return compiled(request, build, tmp_path_factory, "shared")


@pytest.fixture(scope="module")
def static(request, build, tmp_path_factory):
    return compiled(request, build, tmp_path_factory, "static")


def environment_of(leat, path, **more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LEAT_")}
    return {**clean, "LEAT_DIR": str(leat.directory), "LEAT_DATA_DIR": str(path / "data"), **more}


def run(program, *arguments, env=None):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env=env)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
    return done


def uri_of(broker):
    return f"tcp://127.0.0.1:{broker.port}"


def log_of(directory):
    file, = Path(directory).glob("*.log.txt")
    return file.read_text()


def test_only_lightqs_functions_are_exported(build):
    # Breaks: a program with another JSON library, or another Leat, gets ours.
    done = subprocess.run(["nm", "-D", "--defined-only", build / "libleat-lightq.so"],
                          capture_output=True, text=True, check=True)
    names = {line.split()[2].split("@")[0] for line in done.stdout.splitlines()}
    assert names - {"LEAT_LIGHTQ_0"} == FUNCTIONS
    needed = subprocess.run(["ldd", build / "libleat-lightq.so"], capture_output=True, text=True,
                            check=True).stdout
    assert not re.search("zmq|boost|fmt|ssl|sodium|sqlite", needed)


def test_header_is_for_c_and_for_cpp(root, tmp_path):
    # Breaks: LightQ's programs of either language do not compile.
    (tmp_path / "a.cpp").write_text(
        "#include <leat/lightq_api.h>\n"
        "bool f(lightq_broker_mgr* m) { return init_log(\"logs\", \"x\") && run_broker(m); }\n"
        "lightq_consumer_conn* g() { return init_consumer(\"u\", \"p\", \"t\", \"b\"); }\n")
    for compiler, standard in (("g++", "c++11"), ("g++", "c++20"), ("clang++-16", "c++20")):
        subprocess.run([compiler, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic",
                        "-Werror", f"-I{root}/include", tmp_path / "a.cpp"], check=True)
    for standard in "c99", "c11", "c2x":
        subprocess.run(["gcc", f"-std={standard}", "-fsyntax-only", *WARNINGS, f"-I{root}/include",
                        "-x", "c", root / "include/leat/lightq_api.h"], check=True)


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_program_in_c_talks(serve, request, kind, tmp_path):
    # Breaks: what LightQ's C functions promise.
    broker = serve()
    program = request.getfixturevalue(kind)
    run(program, "talk", uri_of(broker), broker.admin_password, env={**os.environ, "LOGS": str(tmp_path)})
    log = log_of(tmp_path)
    for words in ("create_topic: the broker at 127.0.0.1", "topic already exists", "unauthorized_access",
                  "topic not found", "a message of 1048577 bytes; the most is 1 MiB",
                  "a message of 10 bytes, and a buffer of 9"):
        assert words in log
    assert "secret" not in log and broker.admin_password not in log
    assert broker.ask({"cmd": "stats", "topic": "kept", "user_id": "ann",
                       "password": "secret"})["topic_type"] == "file"


def test_everything_that_cannot_be_is_refused(serve, shared, tmp_path):
    # Breaks: a NULL or a long name crashes the program (LightQ: strcpy into fixed arrays).
    broker = serve()
    broker.create("test", password="secret", user_id="ann")
    run(shared, "refuse", uri_of(broker), broker.admin_password,
        env={**os.environ, "LOGS": str(tmp_path)})
    assert "userid has more than 127 bytes" in log_of(tmp_path)


def test_small_things(shared, tmp_path):
    # Breaks: the log, the clock, the random string.
    run(shared, "small", tmp_path)
    file, = tmp_path.glob("*")
    assert re.fullmatch(r"program_\d+\.log\.txt", file.name) and file.stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"\[[-\d: ]+\] \[error\] init_producer: 'nonsense' is no address .*\n",
                        file.read_text())


def test_messages_pass_between_c_and_zeromq(serve, shared, leat, tmp_path):
    # Breaks: LightQ's own programs and those with the new library are on different topics.
    broker = serve()
    broker.create("test", password="secret", user_id="ann")
    join = {"user_id": "ann"}
    run(shared, "produce", uri_of(broker), 1000)
    import zmq
    uri = broker.join("test", "pull", "secret", **join)
    pull, _ = broker.connect(zmq.PULL, uri, "secret", "ann")
    assert take(pull, 1000) == [b"%d" % i for i in range(1000)]


def test_consumer_is_told_when_the_broker_dies(serve, shared):
    # Breaks: it waits for ever (LightQ: a consumer of a dead broker spins).
    broker = serve()
    broker.create("test", password="secret", user_id="ann")
    process = subprocess.Popen([shared, "consume", uri_of(broker)], stdout=subprocess.PIPE, text=True)
    try:
        run(shared, "produce", uri_of(broker), 3)
        output = Reader(process.stdout)
        output.until("2\n")
        broker.stop(signal.SIGKILL)
        assert output.until("done\n") == "0\n1\n2\ngone\ndone\n"
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def test_producer_is_told_when_the_broker_dies(serve, shared):
    # Breaks: a producer of a dead broker waits for ever, or is ended by SIGPIPE.
    broker = serve()
    broker.create("test", password="secret", user_id="ann")
    process = subprocess.Popen([shared, "produce", uri_of(broker), "1000000000"], stdout=subprocess.PIPE,
                               text=True)
    try:
        wait_for(lambda: broker.ask({"cmd": "stats", "topic": "test", "user_id": "ann",
                                     "password": "secret"})["messages_received"] > 1000)
        broker.stop(signal.SIGKILL)
        output, _ = process.communicate(timeout=WAIT_SECONDS)
        assert re.fullmatch(r"sent \d+\ndone\n", output) and process.returncode == 0
    finally:
        process.kill()
        process.wait()


def broker_pids(port):
    """The processes that were started with this port."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"leat-serve" and str(port).encode() in words:
            found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("then", ["free", "leave", "return", "wait"])
@pytest.mark.parametrize("kind", ["shared", "static"])
def test_broker_is_never_left_behind(request, kind, leat, tmp_path, build, then):
    # Breaks: a broker of a dead program keeps the port, or one that was freed goes on.
    port = free_ports(40)
    program = request.getfixturevalue(kind)
    env = environment_of(leat, tmp_path, LOGS=str(tmp_path), PATH=f"{build}:{os.environ['PATH']}")
    process = subprocess.Popen([program, "broker", str(port), SECRET, then], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=env)
    try:
        output = Reader(process.stdout)
        output.until(f"ready tcp://*:{port}\n")
        if then == "wait":
            pid, = broker_pids(port)
            assert SECRET.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
            os.kill(pid, signal.SIGTERM)
            output.until("ended 1\nafter\ndone\n")
        assert process.wait(WAIT_SECONDS) == (-signal.SIGKILL if then == "leave" else 0)
        wait_for(lambda: not broker_pids(port), "the end of the broker")
    finally:
        process.kill()
        process.wait()
        for pid in broker_pids(port):
            os.kill(pid, signal.SIGKILL)
    assert SECRET not in log_of(tmp_path)
    assert not [path for path in (tmp_path / "data").rglob("*")
                if path.is_file() and SECRET.encode() in path.read_bytes()]


def test_broker_takes_the_password_that_it_is_given(leat, shared, tmp_path, build):
    # Breaks: a program that runs its broker with another password than before cannot administer it.
    port = free_ports(40)
    env = environment_of(leat, tmp_path)
    for password in SECRET, SECRET, "another one":
        done = run(shared, "broker", port, password, "free", env=env)
        assert "listening on" in done.stderr
        wait_for(lambda: not broker_pids(port))


def test_broker_that_cannot_listen_is_no_broker(leat, shared, tmp_path):
    # Breaks: init_broker returns a broker that is none, as LightQ's run_broker did.
    env = environment_of(leat, tmp_path, LOGS=str(tmp_path), LEAT_LIGHTQ_ADDRESSES="nonsense")
    done = subprocess.run([shared, "broker", str(free_ports(40)), SECRET, "free"], env=env,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "manager != NULL" in done.stdout
    assert "leat-serve ended with exit code 2" in log_of(tmp_path)
