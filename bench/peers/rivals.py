"""The systems that are compared: how each is built and started, and its settings. README.md gives the
reasons.

To add one: a program that keeps to the protocol of cpp/peer.hpp, and an entry in `RIVALS` below.
"""
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from roles import Role

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "peers"
BUILD_LIMIT_SECONDS = 1800
ONE_TO_ALL = "every subscriber gets every record; there is no group"


class CannotBuild(Exception):
    """Why, in one sentence."""


def build_with(command, name, directory=None):
    """Runs a build, with its output in build/peers/NAME.log."""
    BUILD.mkdir(parents=True, exist_ok=True)
    log = BUILD / f"{name}.log"
    if shutil.which(command[0]) is None:
        raise CannotBuild(f"{command[0]} is missing; tools/install-deps.sh peers installs it")
    with log.open("w") as output:
        process = subprocess.Popen([str(part) for part in command], cwd=directory, stdout=output,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            code = process.wait(BUILD_LIMIT_SECONDS)
        except BaseException as error:
            process.kill()
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise CannotBuild(f"not built within {BUILD_LIMIT_SECONDS} s") from None
            raise
    if code != 0:
        lines = log.read_text(errors="replace").splitlines()
        reason = next((line for line in lines if "error" in line.lower()), f"exit code {code}")
        raise CannotBuild(f"{reason.strip()[:200]} (all of it: {log.relative_to(ROOT)})")


def version_of(package):
    query = ["dpkg-query", "--show", "--showformat=${Version}", package]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "of unknown version"


def is_newer(target, sources):
    return target.exists() and all(source.stat().st_mtime <= target.stat().st_mtime
                                   for source in sources)


@dataclass
class Rival:
    name: str
    settings: str                                # One line for the report.
    variants: tuple = ("blocking",)              # In one-way runs and round trips.
    warm_up: int = 1000                          # Records before the time starts, at least.
    lacks: dict = field(default_factory=dict)    # Pattern -> why it is not measured.
    in_process: bool = False
    batches: tuple = (1,)                        # In one-way runs: records at a time.
    group_batches: tuple = (1,)                  # Of a worker; 0: as many as are there.
    max_bytes: int = 1 << 40                     # One run may write, where memory is not reused.

    def build(self):
        raise NotImplementedError

    def program(self):
        raise NotImplementedError

    def helpers(self, place):
        """Processes that must be started before: a media driver."""
        return []

    def environment(self):
        return None

    def described(self):
        """Its settings, with its version."""
        return self.settings

    def role(self, name, place, cpu, variant, options, other_cpu=None):
        command = [*self.program(), name.split(" ")[0], "--dir", place.path]
        for key, value in options.items():
            command += [f"--{key}", value]
        if variant == "spinning":
            command.append("--spin")
        return Role(name, command, cpu=cpu, other_cpu=other_cpu)


@dataclass
class CppRival(Rival):
    source: str = ""
    libraries: tuple = ()
    package: str = ""            # Debian package that it is built with.
    includes: tuple = (".",)

    def program(self):
        return [BUILD / "cpp" / self.source]

    def described(self):
        return f"{self.settings}; {self.package} {version_of(self.package)}" if self.package else self.settings

    def build(self):
        target = self.program()[0]
        source = HERE / "cpp" / f"{self.source}.cpp"
        sources = [source, HERE / "cpp/peer.hpp", ROOT / "bench/statistics.hpp",
                   *(ROOT / "bench/harness").glob("*.hpp")]
        if "include" in self.includes:
            sources += (ROOT / "include").rglob("*.hpp")
        if is_newer(target, sources):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        compiler = os.environ.get("CXX", "g++")
        build_with([compiler, "-std=gnu++20", "-O3", "-DNDEBUG",
                    *[f"-I{ROOT / include}" for include in self.includes], source, "-o", target,
                    "-pthread", *[f"-l{library}" for library in self.libraries]], self.name)


@dataclass
class JavaRival(Rival):
    main: str = ""
    flags: tuple = ()
    helper: tuple = ()           # Name and role of the process that must be started before.

    def program(self):
        folder = BUILD / "java"
        return ["java", *JVM_FLAGS, *self.flags, "-cp", f"{folder / 'peers.jar'}:{folder / 'lib'}/*",
                f"peers.{self.main}"]

    def build(self):
        sources = [HERE / "java/pom.xml", *(HERE / "java/src").rglob("*.java")]
        if shutil.which("java") is None:
            raise CannotBuild("java is missing; tools/install-deps.sh peers installs it")
        if not is_newer(BUILD / "java/peers.jar", sources):
            shutil.rmtree(BUILD / "java/lib", ignore_errors=True)  # May have other versions.
            build_with(["mvn", "-B", "-q", "-f", HERE / "java/pom.xml",
                        f"-Dpeers.build={BUILD / 'java'}", "package"], "java")

    def helpers(self, place):
        if not self.helper:
            return []
        name, role = self.helper
        return [Role(name, [*self.program(), role, "--dir", place.path], is_helper=True)]


@dataclass
class RustRival(Rival):
    crate: str = ""

    def program(self):
        return [BUILD / "rust" / "release" / self.crate]

    def build(self):
        build_with(["cargo", "build", "--release", "--locked", "--target-dir", BUILD / "rust"],
                   self.name, HERE / "rust")


# The whole heap from the start, and a collector that does nothing in the background.
JVM_FLAGS = ("-Xms256m", "-Xmx1g", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC",
             "-XX:-UsePerfData", "-XX:+UnlockDiagnosticVMOptions",
             "-XX:GuaranteedSafepointInterval=300000")
OPENED = tuple(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in (
    "java.lang", "java.lang.reflect", "java.io", "java.nio", "java.util", "sun.nio.ch",
    "jdk.internal.misc", "jdk.internal.ref"))
EXPORTED = tuple(f"--add-exports={package}=ALL-UNNAMED" for package in (
    "java.base/jdk.internal.ref", "java.base/sun.nio.ch", "java.base/jdk.internal.misc",
    "jdk.unsupported/sun.misc", "jdk.compiler/com.sun.tools.javac.file"))
JVM_WARM_UP = 200_000

RIVALS = [
    JavaRival("aeron", "Java client and media driver 1.51, IPC, exclusive publication with tryClaim",
              ("spinning",), JVM_WARM_UP, {"group": ONE_TO_ALL}, main="AeronPeer",
              flags=("-Dagrona.disable.bounds.checks=true",
                     "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
                     "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"),
              helper=("media driver", "driver")),
    RustRival("iceoryx2", "0.10, publish-subscribe, no overflow, loan and send", ("spinning",),
              lacks={"group": ONE_TO_ALL}, crate="iceoryx2-peer"),
    JavaRival("chronicle", "Chronicle Queue 2026.4 in shared memory, writeBytes",
              ("spinning",), JVM_WARM_UP, {"group": ONE_TO_ALL}, main="ChroniclePeer",
              flags=(*OPENED, *EXPORTED, "-Ddisable.resource.tracing=true", "-Dcheck.thread.safety=false",
                     "-Dchronicle.analytics.disable=true"),
              max_bytes=1 << 30),
    JavaRival("disruptor", "4.0, one producer, busy spin; one way: looks away", ("spinning",), JVM_WARM_UP,
              {"group": "in one process", "crash": "in one process: it dies as a whole"}, True,
              main="DisruptorPeer"),
    CppRival("zeromq", "ipc, PUSH to PULL, high-water marks of 10,000",
             source="zeromq", package="libzmq3-dev", libraries=("zmq",)),
    CppRival("nng", "ipc, PAIR (of several: PUSH to PULL), buffers of 1024",
             source="nng_peer", package="libnng-dev", libraries=("nng",)),
    CppRival("boost-mq", "Interprocess message_queue of 1024 records", ("blocking", "spinning"),
             source="boost_mq", package="libboost-dev", libraries=("rt",)),
    CppRival("pipe", "a named pipe of 1 MiB, reads of 64 KiB", ("blocking", "spinning"),
             source="pipe", batches=(1, 64)),
]

OURS = CppRival("leat", "a topic of 8 MiB, its only publisher exclusive; who blocks does not spin",
                ("spinning", "blocking"), source="leat", batches=(1, 64), group_batches=(1, 0),
                includes=(".", "include"))
