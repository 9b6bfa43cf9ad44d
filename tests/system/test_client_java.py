"""If this failed, programs in Java could not take part in topics, or the client would end them by misuse.

The client's own tests are in clients/java/tests. Here they run with every Java that is found: that of the PATH, which must
be there, and newer ones.
"""
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import ROOT

BUILD = ROOT / "build"
CLIENT = ROOT / "clients" / "java"
NEWER = sorted(path for path in Path("/usr/lib/jvm").glob("*/bin/java")
               if (found := re.search(r"\d+", path.parts[4].replace("1.17", "17"))) and int(found[0]) > 17)

pytestmark = pytest.mark.xdist_group("client_java")  # They build the client at most once.


def run(*command, **options):
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=240,
                         check=False, **options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module", name="jar")
def built_jar():
    """The jar, made if it is missing or older than what it is made from."""
    assert shutil.which("javac"), "no javac: tools/install-deps.sh test installs one"
    jars = list((BUILD / "clients").glob("leat-*.jar"))
    sources = [*CLIENT.rglob("*.*"), BUILD / "libleat.a"]
    if not jars or any(source.stat().st_mtime > jars[0].stat().st_mtime for source in sources):
        run(CLIENT / "build.sh", BUILD)
    return next((BUILD / "clients").glob("leat-*.jar"))


@pytest.fixture(scope="module", name="classes")
def compiled_tests(jar, tmp_path_factory):
    """The tests' classes."""
    into = tmp_path_factory.mktemp("java")
    run("javac", "--release", "17", "-cp", jar, "-d", into, *CLIENT.glob("tests/io/leat/*.java"),
        *CLIENT.glob("bench/*.java"))
    return into


@pytest.fixture(name="environment")
def environment_of_topics(leat_dir):
    """Topics in a directory of this test. The client finds its library in the jar."""
    (leat_dir / "data").mkdir()
    return dict(os.environ, LEAT_DIR=str(leat_dir / "topics"), LEAT_DATA_DIR=str(leat_dir / "data"))


def run_tests(java, jar, classes, environment, *options):
    printed = run(java, *options, f"-Dleat.errors={ROOT / 'spec' / 'errors.csv'}",
                  f"-Dleat.header={ROOT / 'src' / 'capi' / 'leat.h'}", "-cp", f"{jar}:{classes}",
                  "io.leat.Tests", env=environment)
    assert re.search(r"\d+ tests, 0 failed", printed), printed
    return printed


def test_the_tests_of_the_client_pass(jar, classes, environment):
    printed = run_tests("java", jar, classes, environment, "-Xcheck:jni")
    assert "WARNING in native method" not in printed and "FATAL ERROR" not in printed, printed


@pytest.mark.parametrize("java", NEWER or [None], ids=lambda java: java.parts[4] if java else "none")
def test_they_pass_with_newer_versions(java, jar, classes, environment):
    if java is None:
        pytest.skip("no Java newer than 17 below /usr/lib/jvm")
    run_tests(java, jar, classes, environment, "--enable-native-access=ALL-UNNAMED")


def test_they_pass_with_another_collector(jar, classes, environment):
    run_tests("java", jar, classes, environment, "-XX:+UseSerialGC", "-Xmx192m")


def test_a_batch_without_memory_is_not_lost(jar, classes, environment):
    printed = run("java", "-XX:+UseSerialGC", "-Xmx14m", "-cp", f"{jar}:{classes}", "io.leat.OutOfMemory",
                  env=environment)
    assert printed == "nothing is lost\n"


def test_nothing_is_mapped_twice_under_a_limit_of_addresses(jar, classes, environment):
    printed = run("prlimit", f"--as={16 << 30}", "java", "-Xmx64m", "-cp", f"{jar}:{classes}", "io.leat.LimitedAddresses",
                  env=environment)
    assert printed == "nothing is mapped twice\n"


def test_the_library_comes_from_the_library_path_or_from_the_jar(jar, environment, tmp_path):
    """Extracted, it leaves nothing behind."""
    hello = ROOT / "examples/clients/java/Hello.java"
    run("java", f"-Djava.io.tmpdir={tmp_path}", "-cp", jar, hello, env=environment)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("leat-")]
    library = tmp_path / "library"
    library.mkdir()
    run("unzip", "-qj", jar, "io/leat/*/libleat_jni.so", "-d", library)
    run("java", "-Djava.io.tmpdir=/nowhere", f"-Djava.library.path={library}", "-cp", jar, hello, env=environment)


def test_the_jar_installs_into_an_empty_place(jar, leat, tmp_path):
    """The example runs with nothing but it; the pom tells Maven of this very jar."""
    hello = [shutil.copy(file, tmp_path) for file in (jar, ROOT / "examples/clients/java/Hello.java")][1]
    said = run("java", "-cp", jar.name, hello, cwd=tmp_path, env=leat.environment)
    assert said == "hello from Java\n"
    assert leat("sub", "greetings", "--from", "beginning", "--exit").stdout == said
    pom = ElementTree.parse(jar.with_suffix(".pom"))
    group, artifact, version = (pom.findtext(f"{{http://maven.apache.org/POM/4.0.0}}{name}")
                                for name in ("groupId", "artifactId", "version"))
    assert (group, f"{artifact}-{version}.jar") == ("io.leat", jar.name)


def test_the_documentation_has_no_warnings(tmp_path):
    run("javadoc", "-quiet", "-Xdoclint:all", "-Werror", "-d", tmp_path, *CLIENT.glob("src/io/leat/*.java"))


def test_only_what_java_calls_is_exported(jar, tmp_path):
    run("unzip", "-qj", jar, "io/leat/*/libleat_jni.so", "-d", tmp_path)
    names = run("nm", "-D", "--defined-only", "-j", tmp_path / "libleat_jni.so").split()
    assert names and all(name.startswith("Java_io_leat_Native_") for name in names), names


def test_two_builds_make_the_same_jar(jar, tmp_path):
    (tmp_path / "capi").symlink_to(BUILD / "capi")
    run(CLIENT / "build.sh", tmp_path, BUILD / "libleat.a")
    again = tmp_path / "clients" / jar.name
    assert again.read_bytes() == jar.read_bytes()


def test_readme_snippets_run(jar, environment, tmp_path):
    """Each `java` block is the body of a method, and they follow one another."""
    blocks = re.findall(r"```java\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.S)
    assert len(blocks) >= 3
    program = tmp_path / "Snippets.java"
    program.write_text("import io.leat.*;\nimport java.nio.ByteBuffer;\nimport java.time.Duration;\n"
                       "import java.util.*;\nimport static java.nio.charset.StandardCharsets.UTF_8;\n"
                       "public class Snippets {\n  public static void main(String[] arguments) {\n"
                       + "\n".join(blocks) + "  }\n}\n", encoding="utf-8")
    run("java", "-cp", jar, program, env=environment)


CHILD = """
import io.leat.*;
import java.time.Duration;
public class Child {
  public static void main(String[] arguments) throws Exception {
    Topic topic = Topic.openOrCreate("t");
    Publisher publisher = topic.publisher();
    publisher.publish("held".getBytes());
    Member member = topic.group("g", new GroupOptions().from(From.beginning())).join();
    Delivery held = member.receive(Duration.ofSeconds(10));
    Claim claim = publisher.claim(10);
    Process child = new ProcessBuilder("sleep", "60").start();
    System.out.println(child.pid());
    topic.subscriber().receive(null);
    System.out.println(held + " " + claim);
  }
}
"""


def open_files(process):
    """What a process has open, by name."""
    return [os.readlink(entry) for entry in Path(f"/proc/{process}/fd").iterdir()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_process_keeps_nothing_alive(number, jar, environment, tmp_path):
    """Its parent, which waits in C with a record and a claim in its hands, ends at once, and others get the record and
    pass over the claim although the child goes on."""
    program = tmp_path / "Child.java"
    program.write_text(CHILD, encoding="utf-8")
    with subprocess.Popen(["java", "-cp", str(jar), str(program)], stdout=subprocess.PIPE, text=True,
                          env=environment, start_new_session=True) as java:
        child = int(java.stdout.readline())
        time.sleep(0.2)
        assert not [name for name in open_files(child) if name.startswith(environment["LEAT_DIR"])]
        java.send_signal(number)
        try:
            assert java.wait(timeout=10) == (143 if number == signal.SIGTERM else -9)
            leat = os.environ.get("LEAT_BIN", BUILD / "leat")
            run(leat, "pub", "t", "next", env=environment)
            late = ["timeout", "20", leat, "sub", "t"]
            assert run(*late, "--from", "beginning", "-n", "2", env=environment) == "held\nnext\n"
            assert sorted(run(*late, "--group", "g", "-n", "2", env=environment).split()) == ["held", "next"]
            assert Path(f"/proc/{child}/comm").read_text(encoding="utf-8") == "sleep\n"  # All the time.
        finally:
            os.killpg(java.pid, signal.SIGKILL)
