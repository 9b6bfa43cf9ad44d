"""If this failed, a program in Rust could not be built from the crates, or would not take part in topics.

The tests of the crates themselves (clients/rust) run here too. A missing toolchain is a failure.
"""
import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

BUILD = ROOT / "build"
CLIENTS = BUILD / "clients"
EXAMPLE = ROOT / "examples" / "clients" / "rust"
TOKIO_EXAMPLE = ROOT / "examples" / "clients" / "rust-tokio"

# In one process: cargo builds one thing at a time.
pytestmark = pytest.mark.xdist_group("client_rust")


def run(command, **options):
    """Its output; fails with all that it said."""
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                         timeout=240, **options)
    assert ran.returncode == 0, f"{command}:\n{ran.stdout[-8000:]}"
    return ran.stdout


@pytest.fixture(scope="module")
def environment():
    """Of cargo and of what it built; the crates and the driver are there."""
    if not (CLIENTS / "rust-conformance").exists() or not list(CLIENTS.glob("leat-sys-*.crate")):
        run([ROOT / "clients/rust/build.sh", BUILD])
    return dict(os.environ, CARGO_TARGET_DIR=str(CLIENTS / "rust-target"), LEAT_LIB_DIR=str(BUILD),
                LEAT_INCLUDE=str(BUILD / "capi"), LD_LIBRARY_PATH=str(BUILD), CARGO_NET_OFFLINE="true")


def test_the_crates_own_tests_pass(environment):
    said = run(["cargo", "test", "--offline", "--locked", "--quiet"], cwd=ROOT / "clients/rust", env=environment)
    assert said.count("test result: ok.") >= 6


def test_the_documentation_has_no_warnings(environment):
    run(["cargo", "doc", "--offline", "--locked", "--quiet", "--no-deps"], cwd=ROOT / "clients/rust",
        env=dict(environment, RUSTDOCFLAGS="-D warnings"))


def hears_the_example(program, leat, environment):
    """Runs it beside `leat sub`."""
    topics = dict(environment, LEAT_DIR=str(leat.directory))
    leat("topic", "create", "greetings", check=True)
    subscriber = leat.start("sub", "greetings", "--from", "beginning", "-n", "1")
    assert run([program], env=topics) == "hello from Rust\n"
    assert subscriber.communicate(timeout=20)[0] == "hello from Rust\n"


@pytest.mark.parametrize("library", ["shared", "static"])
def test_the_crates_install_into_an_empty_place(environment, leat, tmp_path, library):
    """Without a network, and without what cargo has downloaded before."""
    for crate in CLIENTS.glob("leat-*.crate"):
        run(["tar", "xf", crate], cwd=tmp_path)
    (dependency,) = tmp_path.glob("leat-[0-9]*")
    shutil.copytree(EXAMPLE / "src", tmp_path / "src")
    features = ', features = ["static"]' if library == "static" else ""
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\nleat = {{ path = "{dependency.name}"{features} }}\n', encoding="utf-8")
    own = dict(environment, CARGO_TARGET_DIR=str(tmp_path / "target"), CARGO_HOME=str(tmp_path / "cargo"))
    if library == "static":
        # Only the static library is there, so the program cannot have found the other one.
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib/libleat.a").symlink_to(BUILD / "libleat.a")
        own.update(LEAT_LIB_DIR=str(tmp_path / "lib"), LD_LIBRARY_PATH="")
    run(["cargo", "build", "--offline", "--quiet"], cwd=tmp_path, env=own)
    hears_the_example(tmp_path / "target/debug/hello", leat, own)


def test_the_readme_s_programs_compile(environment, tmp_path):
    text = (ROOT / "clients/rust/README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```rust\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) == 2
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_text(
        "use std::time::Duration;\nfn work(_: Option<leat::Record<'_>>) {}\n"
        f"fn main() -> leat::Result<()> {{\n{''.join(blocks)}println!(\"{{offset}}\");\nOk(())\n}}\n",
        encoding="utf-8")
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "readme"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\nleat = {{ path = "{ROOT / "clients/rust/leat"}" }}\n', encoding="utf-8")
    run(["cargo", "check", "--offline", "--quiet"], cwd=tmp_path, env=environment)


# What must not compile, and the error that says why. Without the line marked as wrong, each of them does compile.
MISUSES = {
    "a record outlives its batch": ("E0499", """
        let record = subscriber.poll(1)?.records().next();
        subscriber.poll(1)?; // wrong
        println!("{record:?}");"""),
    "a value outlives its batch": ("E0499", """
        let value = subscriber.receive(1, None)?.records().next().unwrap().value();
        subscriber.wait(None)?; // wrong
        println!("{value:?}");"""),
    "a key outlives its subscriber": ("E0505", """
        let key = subscriber.poll(1)?.records().next().unwrap().key();
        drop(subscriber); // wrong
        println!("{key:?}");"""),
    "headers outlive the scope of their subscriber": ("E0597", """
        let mut kept = None;
        {
            let mut inner = topic.subscriber(&Default::default())?;
            kept = inner.poll(1)?.records().next().map(|record| record.headers());
        }
        println!("{kept:?}"); // wrong"""),
    "a batch goes to a thread that may outlive it": ("E0597", """
        let batch = subscriber.poll(1)?;
        thread::spawn(move || batch.len()); // wrong"""),
    "a record outlives its acknowledgement": ("E0505", """
        let mut deliveries = member.receive(1, None)?;
        let delivery = deliveries.next().unwrap();
        let record = delivery.record();
        delivery.acknowledge()?; // wrong
        println!("{record:?}");"""),
    "deliveries outlive the next": ("E0499", """
        let deliveries = member.receive(1, None)?;
        member.receive(1, None)?; // wrong
        println!("{}", deliveries.len());"""),
    "the room of a claim outlives it": ("E0505", """
        let mut claim = publisher.claim(1, None)?;
        let room = &mut claim[..];
        claim.commit()?; // wrong
        room[0] = 1;"""),
    "publishing while a claim is open": ("E0499", """
        let claim = publisher.claim(1, None)?;
        publisher.publish(b"x", None)?; // wrong
        claim.commit()?;"""),
    "a value ends before it is published": ("E0505", """
        let value = vec![1];
        let record = NewRecord::new(&value);
        drop(value); // wrong
        publisher.publish_record(&record, None)?;"""),
    "writing to a record": ("E0594", """
        let value = subscriber.poll(1)?.records().next().unwrap().value();
        value[0] = 1; // wrong"""),
    "use after close": ("E0382", """
        drop(publisher); // wrong
        publisher.publish(b"x", None)?;"""),
    "committing twice": ("E0382", """
        let claim = publisher.claim(1, None)?;
        claim.commit()?; // wrong
        claim.commit()?;"""),
    "close during a wait elsewhere": ("E0505", """
        let waiter = &mut subscriber;
        thread::scope(|threads| {
            threads.spawn(|| waiter.wait(None));
            drop(subscriber); // wrong
        });"""),
    "two threads at once, one writes": ("E0499", """
        thread::scope(|threads| {
            threads.spawn(|| publisher.publish(b"x", None));
            threads.spawn(|| publisher.publish(b"y", None)); // wrong
        });"""),
    "two threads at once, both look": ("E0277", """
        thread::scope(|threads| {
            threads.spawn(|| subscriber.is_lossy()); // wrong
        });"""),
    "a number as a value": ("E0308", """
        publisher.publish(5, None)?; // wrong"""),
    "numbers as values": ("E0277", """
        publisher.publish_batch(&[5], None)?; // wrong"""),
    "text as a limit": ("E0308", """
        subscriber.poll("all")?; // wrong"""),
}


def rust_function(name, body):
    return (f"pub fn {name}(topic: Topic, mut publisher: Publisher, mut subscriber: Subscriber, mut member: Member)"
            f" -> Result<()> {{{body}\nOk(())\n}}\n")


def test_a_glob_import_leaves_the_prelude_as_it_is(environment, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_text("""
use leat::*;
struct Wrapper(u8);
impl From<u8> for Wrapper {
    fn from(value: u8) -> Wrapper {
        Wrapper(value)
    }
}
fn both() -> Result<(), Box<dyn std::error::Error>> {
    let inner: Result<()> = Err(Error::from(Code::Full));
    Ok(inner?)
}
fn main() {
    println!("{} {}", Wrapper::from(1).0, both().is_err());
}
""", encoding="utf-8")
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "glob"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\nleat = {{ path = "{ROOT / "clients/rust/leat"}" }}\n', encoding="utf-8")
    run(["cargo", "check", "--offline", "--quiet"], cwd=tmp_path, env=environment)


def test_misuse_does_not_compile_and_for_the_right_reason(environment, tmp_path):
    """Stable rustdoc takes any error for that of a `compile_fail` example, so these are checked here, too."""
    head = "#![allow(unused)]\nuse leat::*;\nuse std::thread;\n"
    (tmp_path / "src/bin").mkdir(parents=True)
    right = "".join(rust_function(f"right{number}", re.sub(r"^.*// wrong$", "", body, flags=re.M))
                    for number, (_, body) in enumerate(MISUSES.values()))
    wrong = [(name, code, rust_function("wrong", body)) for name, (code, body) in MISUSES.items()]
    for source in sorted((ROOT / "clients/rust/leat/src").glob("*.rs")):
        text = re.sub(r"^/// ?", "", source.read_text(encoding="utf-8"), flags=re.M)
        blocks = re.findall(r"^```compile_fail,(E\d+)\n(.*?)^```", text, re.M | re.S)
        wrong += [(source.name, *block) for block in blocks]
    assert len(wrong) >= len(MISUSES) + 4
    for number, (_, _, text) in enumerate([("", "", right), *wrong]):
        (tmp_path / f"src/bin/program{number}.rs").write_text(f"{head}fn main() {{}}\n{text}", encoding="utf-8")
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "misuse"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\nleat = {{ path = "{ROOT / "clients/rust/leat"}" }}\n', encoding="utf-8")
    command = ["cargo", "check", "--offline", "--quiet", "--keep-going", "--message-format=short"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
                         timeout=240)
    found = re.findall(r"^src/bin/program(\d+)\.rs:\d+:\d+: error(?:\[(E\d+)\])?", ran.stderr, re.M)
    assert not [code for number, code in found if number == "0"], ran.stderr
    reasons = [(name, {code for at, code in found if at == str(number)})
               for number, (name, _, _) in enumerate(wrong, 1)]
    assert reasons == [(name, {code}) for name, code, _ in wrong], ran.stderr


def test_a_library_that_is_too_old_is_said_in_words(environment, tmp_path):
    (tmp_path / "leat").mkdir()
    (tmp_path / "leat/leat.h").write_text("#define LEAT_ABI_VERSION 0\n", encoding="utf-8")
    old = dict(environment, LEAT_INCLUDE=str(tmp_path), CARGO_TARGET_DIR=str(tmp_path / "target"))
    ran = subprocess.run(["cargo", "build", "--offline", "--quiet", "--package", "leat-sys"], env=old, text=True,
                         cwd=ROOT / "clients/rust", capture_output=True, check=False, timeout=240)
    assert ran.returncode != 0
    assert "libleat is too old: its LEAT_ABI_VERSION is 0, wanted is 1" in ran.stderr


def test_a_library_that_is_too_old_is_said_when_the_program_runs(environment, leat, tmp_path):
    (tmp_path / "old.c").write_text("unsigned leat_abi_version(void) { return 0; }\n"
                                    "int leat_abi_check(unsigned version) { return version == 0 ? 0 : 19; }\n", encoding="utf-8")
    run(["gcc", "-shared", "-fPIC", "old.c", "-o", "old.so"], cwd=tmp_path)
    run(["cargo", "build", "--offline", "--locked", "--quiet"], cwd=EXAMPLE, env=environment)
    old = dict(environment, LEAT_DIR=str(leat.directory), LD_PRELOAD=str(tmp_path / "old.so"))
    ran = subprocess.run([CLIENTS / "rust-target/debug/hello"], env=old, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 1
    assert re.search(r"libleat [0-9.]+ is too old: its LEAT_ABI_VERSION is 0, wanted is \d+", ran.stderr), ran.stderr


def test_the_example_for_tokio_waits_in_its_event_loop(environment, leat):
    """Skipped where crates.io cannot be reached and tokio was not downloaded before."""
    text = (ROOT / "clients/rust/README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```rust,ignore\n(.*?)^```", text, re.M | re.S)
    assert shown in (TOKIO_EXAMPLE / "src/main.rs").read_text(encoding="utf-8")
    online = {name: value for name, value in environment.items() if name != "CARGO_NET_OFFLINE"}
    online.update(CARGO_NET_RETRY="0", CARGO_HTTP_TIMEOUT="10")
    fetched = subprocess.run(["cargo", "fetch", "--locked", "--quiet"], cwd=TOKIO_EXAMPLE, env=online, capture_output=True,
                             text=True, check=False, timeout=60)
    if fetched.returncode != 0:
        pytest.skip("no tokio: " + fetched.stderr.strip().splitlines()[-1])
    run(["cargo", "build", "--offline", "--locked", "--quiet"], cwd=TOKIO_EXAMPLE, env=environment)
    assert run([CLIENTS / "rust-target/debug/hello-tokio"], env=dict(environment, LEAT_DIR=str(leat.directory))) == "hello from tokio\n"
