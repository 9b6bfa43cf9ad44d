"""If this failed, a program for Node would lose records, block its event loop, or not even install."""
import fcntl
import hashlib
import io
import os
import shutil
import signal
import struct
import subprocess
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import ROOT

HERE = ROOT / "clients" / "node"
BUILD = ROOT / "build"
PACKAGE = BUILD / "clients" / "node"
TESTS = sorted((HERE / "tests").glob("*.test.js"))
NODE = os.environ.get("NODE", "node")
F_OFD_SETLK = 37  # As Linux has it; fcntl does not name it before Python 3.12.


def sources():
    return [path for folder in ("src", "package") for path in (HERE / folder).rglob("*") if path.is_file()]


@pytest.fixture(scope="module", autouse=True)
def built(tmp_path_factory):
    """Builds the package, if what is there is older than its sources. A missing toolchain is a failure."""
    assert shutil.which(NODE), "no node: tools/install-deps.sh test"
    addon = PACKAGE / "leat" / "leat.node"
    inputs = [*sources(), HERE / "tests" / "malloc.c", HERE / "build.sh", BUILD / "libleat.a", ROOT / "src" / "capi" / "leat.h"]
    with open(tmp_path_factory.getbasetemp().parent / "node.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Tests run in several processes.
        if not addon.exists() or any(path.stat().st_mtime > addon.stat().st_mtime for path in inputs):
            subprocess.run([HERE / "build.sh", BUILD], check=True, timeout=250)


def node(*arguments, **environment):
    return subprocess.run([NODE, *map(str, arguments)], capture_output=True, text=True, timeout=250, check=False,
                          env={**os.environ, "NODE_PATH": str(PACKAGE), **environment})


@pytest.mark.parametrize("path", TESTS, ids=[path.name.split(".")[0] for path in TESTS])
def test_of_the_client(path):
    done = node("--test", path)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr


def test_exports_nothing_but_what_node_asks_for():
    listed = subprocess.run(["nm", "-D", "--defined-only", PACKAGE / "leat" / "leat.node"],
                            capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in listed.splitlines()} <= {
        "napi_register_module_v1", "node_api_module_get_api_version_v1"}
    needed = subprocess.run(["ldd", PACKAGE / "leat" / "leat.node"], capture_output=True, text=True, check=True).stdout
    assert "libstdc++" not in needed and "libleat" not in needed


def install(into):
    """With npm, where there is one: Debian has it in a package of its own."""
    tarball, = (BUILD / "clients").glob("leat-*.tgz")
    if shutil.which("npm"):
        subprocess.run(["npm", "install", "--offline", "--no-audit", "--no-fund", tarball], cwd=into, check=True,
                       capture_output=True, timeout=100)
    else:
        (into / "node_modules" / "leat").mkdir(parents=True)
        subprocess.run(["tar", "-xzf", tarball, "-C", into / "node_modules" / "leat", "--strip-components=1"], check=True)


def test_example_talks_to_the_command_line(leat, tmp_path):
    """The package as it is installed, without any network."""
    install(tmp_path)
    example = shutil.copy(ROOT / "examples" / "clients" / "node" / "hello.js", tmp_path)
    done = subprocess.run([NODE, example], env=leat.environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello from Node\n", "")
    subscribed = leat("sub", "greetings", "--from", "beginning", "--exit", check=True)
    assert subscribed.stdout == "hello from Node\n"


def test_import_of_a_module(leat, tmp_path):
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "leat").symlink_to(PACKAGE / "leat")
    program = tmp_path / "program.mjs"
    program.write_text("import leat, { Topic, LeatError, errors } from 'leat';\n"
                       "const topic = await Topic.openOrCreate('news');\n"
                       "console.log(leat.Topic === Topic, typeof LeatError, errors.full, topic.name);\n", encoding="utf-8")
    done = subprocess.run([NODE, program], env=leat.environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("true function 8 news\n", "")


def fetched(package, sha256, folder):
    """Unpacks a package of npm's registry, once for all runs. Skips the test where the registry cannot be reached."""
    if (folder / "package.json").exists():
        return
    try:
        with urllib.request.urlopen(f"https://registry.npmjs.org/{package}.tgz", timeout=30) as answer:
            data = answer.read()
    except OSError as error:
        pytest.skip(f"no {package}: {error}")
    assert hashlib.sha256(data).hexdigest() == sha256
    with tempfile.TemporaryDirectory(dir=BUILD) as place, tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(place)  # Checked above.
        (unpacked,) = Path(place).iterdir()
        folder.parent.mkdir(parents=True, exist_ok=True)
        unpacked.rename(folder)


def test_types_compile_and_so_does_using(tmp_path):
    """With TypeScript and Node's types of npm's registry, because Debian's TypeScript does not know `using`."""
    modules = BUILD / "clients" / "node_modules"
    fetched("typescript/-/typescript-5.9.3", "10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3",
            modules / "typescript")
    fetched("@types/node/-/node-20.19.0", "77407f7c85c14ca7722b17737940baeed06a89c47c1a633c4d5c4a5a3ed5bb0e",
            modules / "@types" / "node")
    fetched("undici-types/-/undici-types-6.21.0", "cfa1a9a5e18988850e548f4f6b629c58da32dc32bebb116e58ea301e516fd16d",
            modules / "undici-types")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "leat").symlink_to(PACKAGE / "leat")
    for name in ("@types", "undici-types"):
        (tmp_path / "node_modules" / name).symlink_to(modules / name)
    (tmp_path / "program.mts").write_text("""
import { Topic, Reader, LeatRecord, Gap } from 'leat';
using topic = await Topic.openOrCreate('ts');
await using publisher = topic.publisher();
publisher.publish('x', { key: 'k' });
const counts: Record<string, number> = {};
class Mine extends Reader<number> {}
const entry: LeatRecord | Gap = await topic.subscriber({ from: 'beginning' }).receive({ timeout: 1000 });
console.log(entry.isGap ? entry.reason : entry.value, counts, Mine);
// @ts-expect-error
await topic.subscriber().receive({ timeuot: 10 });
""", encoding="utf-8")
    done = subprocess.run([NODE, modules / "typescript/bin/tsc", "--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--lib",
                           "es2022,esnext.disposable", "program.mts"],
                          cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout


def test_readme_says_what_works(leat, tmp_path):
    """Its five calls, as they stand there."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    code = text.split("```js\n")[1].split("```")[0].replace("for await", "setTimeout(() => subscriber.close(), 200);\nfor await")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "leat").symlink_to(PACKAGE / "leat")
    program = tmp_path / "program.mjs"
    program.write_text(code, encoding="utf-8")
    done = subprocess.run([NODE, program], env=leat.environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("hello 0\n", "")


def test_the_event_loop_goes_on_while_another_process_works_on_groups(leat, tmp_path):
    """It has the lock under which groups are made, opened and deleted."""
    leat("topic", "create", "orders", check=True)
    program = tmp_path / "program.js"
    program.write_text("""
const { Topic } = require('leat');
(async () => {
  const topic = await Topic.open('orders');
  await topic.group('g');
  console.log('ready');
  await new Promise((resolve) => process.stdin.once('data', resolve));
  let pending = 4;
  for (const promise of [topic.info(), topic.findGroup('g'), topic.group('h'), topic.deleteGroup('g')])
    promise.catch(() => {}).finally(() => { --pending; });
  topic.groupNames();
  topic.publisher().publish('x');
  console.log(pending);
  process.stdin.once('data', async () => {
    console.log((await topic.info()).name);
    process.exit();
  });
})();
""", encoding="utf-8")
    process = subprocess.Popen([NODE, program], env={**leat.environment, "NODE_PATH": str(PACKAGE)}, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    leat.started.append(process)
    assert process.stdout.readline() == "ready\n"
    with open(leat.directory / "orders" / "control", "r+b") as control:
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 2**56 - 1, 1, 0)
        fcntl.fcntl(control, F_OFD_SETLK, lock)
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "4\n"  # They wait for the lock, and nothing else does.
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "orders\n"
    assert process.wait(60) == 0


def test_a_killed_member_loses_nothing(leat, tmp_path):
    """A member and a publisher in its batch are killed; another member gets all that was published."""
    program = tmp_path / "worker.js"
    program.write_text("""
const { Topic } = require('leat');
(async () => {
  const topic = await Topic.openOrCreate('jobs');
  const member = await (await topic.group('workers', { from: 'beginning' })).join();
  const publisher = topic.publisher();
  console.log('ready');
  for (let i = 0; ; ++i) {
    if (process.argv[2] === 'holds') {
      await member.receive();
      console.log('held');
      await new Promise((resolve) => setTimeout(resolve, 60000));
    }
    publisher.publishBatch([`${process.pid} ${i}`, `${process.pid} ${i}`]);
    await new Promise((resolve) => setImmediate(resolve));
  }
})();
""", encoding="utf-8")
    environment = {**leat.environment, "NODE_PATH": str(PACKAGE)}
    leat("topic", "create", "jobs", check=True)
    leat("pub", "jobs", input="first\n", check=True)

    def start(*arguments):
        process = subprocess.Popen([NODE, program, *arguments], env=environment, stdout=subprocess.PIPE, text=True,
                                   start_new_session=True)
        leat.started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    holder = start("holds")
    assert holder.stdout.readline() == "held\n"
    for _ in range(3):
        publisher = start()
        time.sleep(0.05)  # It publishes all the time.
        publisher.kill()
        publisher.wait()
    holder.kill()
    holder.wait()
    checker = tmp_path / "checker.js"
    checker.write_text("""
const { Topic } = require('leat');
(async () => {
  const topic = await Topic.open('jobs');
  const member = await (await topic.findGroup('workers')).join();
  const { end } = (await topic.info()).partitions[0];
  const seen = new Map();
  const first = await member.receive({ timeout: 10000 });
  console.log(first.value.toString().trim(), first.deliveries);
  member.acknowledge(first);
  for (let offset = 0; offset + 1 < end;) {
    const batch = await member.receiveBatch({ timeout: 10000 });
    for (const one of batch) {
      offset = Math.max(offset, one.offset);
      if (!one.isGap) seen.set(`${one.value}`, (seen.get(`${one.value}`) ?? 0) + 1);
    }
    member.acknowledge(batch);
  }
  console.log([...seen.values()].every((count) => count === 2));
})();
""", encoding="utf-8")
    done = subprocess.run([NODE, checker], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("first 2\ntrue\n", "")


# Holds a record and a claim, starts a child, and is killed.
HOLDER = """
const { spawn } = require('child_process');
const { Topic } = require('leat');
(async () => {
  const topic = await Topic.open('topic');
  const publisher = topic.publisher();
  const member = await (await topic.findGroup('workers')).join();
  await member.receive();
  const claim = publisher.claim(8);
  const waiting = topic.subscriber().receive();
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  child.on('spawn', () => console.log(child.pid));
  await waiting;
  claim.commit();
})();
"""
# Waits for what becomes of them.
HEIR = """
const { Topic } = require('leat');
(async () => {
  const topic = await Topic.open('topic');
  const subscriber = topic.subscriber({ from: { offset: 1 } });
  const member = await (await topic.findGroup('workers')).join();
  const waits = [subscriber.receive(), member.receive()];
  console.log('ready');
  const [gap, again] = await Promise.all(waits);
  console.log(gap.reason, gap.offset, `${again.value}`, again.deliveries);
})();
"""


def test_a_child_keeps_nothing_of_its_parent_alive(leat, tmp_path):
    environment = {**leat.environment, "NODE_PATH": str(PACKAGE)}

    def start(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        process = subprocess.Popen([NODE, tmp_path / name], stdout=subprocess.PIPE, text=True, env=environment,
                                   start_new_session=True)
        leat.started.append(process)
        return process

    setup = """
const { Topic } = require('leat');
Topic.create('topic').then(async (topic) => {
  await topic.group('workers', { from: 'beginning' });
  topic.publisher().publish('mine');
});
"""
    assert node("-e", setup, **environment).returncode == 0
    holder = start("holder.js", HOLDER)
    child = int(holder.stdout.readline())
    try:
        heir = start("heir.js", HEIR)
        assert heir.stdout.readline() == "ready\n"
        holder.kill()
        killed = time.monotonic()
        assert heir.stdout.read() == "died 1 mine 2\n"
        assert time.monotonic() - killed < 10
        assert Path(f"/proc/{child}/comm").read_text(encoding="utf-8") == "sleep\n"  # It has outlived its parent.
    finally:
        os.kill(child, signal.SIGKILL)  # It has a session of its own.
