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
    assert run([program], env=topics) == "0: hello from Rust\n"
    assert subscriber.communicate(timeout=20)[0] == "hello from Rust\n"


def test_the_example_talks_to_leat_sub(environment, leat):
    run(["cargo", "build", "--offline", "--locked", "--quiet"], cwd=EXAMPLE, env=environment)
    hears_the_example(CLIENTS / "rust-target/debug/hello", leat, environment)


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


def test_a_library_that_is_too_old_is_said_in_words(environment, tmp_path):
    (tmp_path / "leat").mkdir()
    (tmp_path / "leat/leat.h").write_text("#define LEAT_ABI_VERSION 0\n", encoding="utf-8")
    old = dict(environment, LEAT_INCLUDE=str(tmp_path), CARGO_TARGET_DIR=str(tmp_path / "target"))
    ran = subprocess.run(["cargo", "build", "--offline", "--quiet", "--package", "leat-sys"], env=old, text=True,
                         cwd=ROOT / "clients/rust", capture_output=True, check=False, timeout=240)
    assert ran.returncode != 0
    assert "libleat is too old: its LEAT_ABI_VERSION is 0, wanted is 1" in ran.stderr
