"""If this failed, the example of one language would not talk to those of all others, or to `leat sub`.

Every example publishes a greeting and prints all that its topic has. They run one after the other in one place, twice:
so each reads what each other published. The topic has a gap and more than one batch before they begin. Also the five
calls of READMEs run as they stand there; those of Java too, in its own tests, while there Node's are changed to end, and
Rust's only compiled.
"""
import os
import re
import subprocess

import pytest
from conftest import ROOT, run

BUILD = run.BUILD
CLIENTS = BUILD / "clients"
EXAMPLES = ROOT / "examples" / "clients"
NAMES = {"c": "C", "go": "Go", "luajit": "Lua"}  # In greetings, if not the capitalized word.

# cargo builds one thing at a time.
pytestmark = pytest.mark.xdist_group("client_rust")


@pytest.fixture(scope="module")
def environment():
    """Of the examples and of what builds them, without a network."""
    return dict(os.environ, PYTHONPATH=str(CLIENTS / "python"), NODE_PATH=str(CLIENTS / "node"),
                LD_LIBRARY_PATH=str(BUILD), GOPROXY="off", GOTOOLCHAIN="local", GOCACHE=str(CLIENTS / "go.cache"),
                CGO_ENABLED="1", CGO_CFLAGS=f"-O2 -g -I{BUILD / 'capi'}", CGO_LDFLAGS=f"-L{BUILD} -lleat",
                CARGO_TARGET_DIR=str(CLIENTS / "rust-target"), CARGO_NET_OFFLINE="true", LEAT_LIB_DIR=str(BUILD),
                LEAT_INCLUDE=str(BUILD / "capi"))


def output(command, **options):
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, **options)
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran.stdout


def example(language, environment, where):
    """The command that runs it; compiled into a directory where that is needed."""
    def lua(interpreter, version):
        return ["env", f"LUA_CPATH={CLIENTS}/lua/{version}/?.so", interpreter, EXAMPLES / "lua.lua"]

    built = where / language
    if language == "c":
        output(["gcc", EXAMPLES / "c/hello.c", f"-I{BUILD / 'capi'}", f"-L{BUILD}", "-lleat", "-o", built])
    elif language == "go":
        output(["go", "build", "-o", built, "."], cwd=EXAMPLES / "go", env=environment)
    elif language == "rust":
        output(["cargo", "build", "--offline", "--locked", "--quiet"], cwd=EXAMPLES / "rust", env=environment)
    elif language == "java":
        output(["javac", "-cp", *CLIENTS.glob("leat-*.jar"), "-d", where, EXAMPLES / "java/Hello.java"])
    jar = ":".join(map(str, [*CLIENTS.glob("leat-*.jar"), where]))
    return {"python": ["/usr/bin/python3", EXAMPLES / "python.py"], "java": ["java", "-cp", jar, "Hello"],
            "rust": [CLIENTS / "rust-target/debug/hello"], "node": ["node", EXAMPLES / "node/hello.js"],
            "ruby": ["/usr/bin/ruby", f"-I{CLIENTS}/ruby/lib", EXAMPLES / "ruby.rb"],
            "lua": lua("lua5.4", "5.4"), "luajit": lua("luajit", "5.1")}.get(language, [built])


def fill(leat):
    """A topic with a gap, and more records than one batch of any example."""
    driver = run.Driver([BUILD / "conformance_c"], leat.environment)
    assert driver.ask("create t greetings") == ["ok"]
    assert driver.ask("publisher p t") == ["ok"]
    assert driver.ask("claim p size=8")[-1].startswith("ok")
    assert driver.ask("abort p") == ["ok"]
    assert driver.end(kill=False)
    lines = [f"line {number}" for number in range(100)]
    leat("pub", "greetings", input="".join(f"{line}\n" for line in lines), check=True)
    return lines


def test_each_example_talks_to_all_others(environment, leat, tmp_path):
    topics = dict(environment, LEAT_DIR=str(leat.directory))
    greetings = fill(leat)
    listening = leat.start("sub", "greetings", "--from", "beginning", "-n",
                           str(len(greetings) + 2 * len(run.chosen())))
    commands = {language: example(language, environment, tmp_path) for language in run.chosen()}
    for language, command in [*commands.items()] * 2:
        greetings.append(f"hello from {NAMES.get(language, language.capitalize())}")
        assert output(command, env=topics).splitlines() == greetings, language
    assert listening.communicate(timeout=20)[0].splitlines() == greetings


# Comments, imports, and where the program begins.
FRAME = re.compile(r'//|/\*|--|#|"|import |package |use |(const|local) .*require|require |(func|fn|int|public .*) main|public class')


# In C one declares; in C and Go one looks for errors.
@pytest.mark.parametrize("path, most", [
    ("c/hello.c", 18), ("go/main.go", 13), *((path, 10) for path in (
        "java/Hello.java", "lua.lua", "node/hello.js", "python.py", "ruby.rb", "rust/src/main.rs"))])
def test_each_example_has_ten_lines(path, most):
    lines = [line.strip() for line in (EXAMPLES / path).read_text(encoding="utf-8").splitlines()]
    counted = [line for line in lines if re.search("[a-z]", line) and not FRAME.match(line)]
    assert len(counted) <= most, counted


GO = """package main
import ("context"; "leat")
func main() {
ctx := context.Background()
%s
if err != nil || offset != record.Offset { panic(err) }
}
"""


@pytest.mark.parametrize("language", sorted({"python", "go", "ruby", "lua", "luajit"} & set(run.chosen())))
def test_the_readmes_five_calls_run(language, environment, leat, tmp_path):
    """Those of Java, Node and Rust are in the tests of their packages."""
    readme = ROOT / "clients" / language.replace("jit", "") / "README.md"
    code = re.search(r"^## Five calls\n+```\w+\n(.*?)^```", readme.read_text(encoding="utf-8"), re.M | re.S)[1]
    program = tmp_path / "program"
    command = [*example(language, environment, tmp_path)[:-1], program]
    if language == "go":
        (tmp_path / "go.mod").write_text("module example\ngo 1.19\nrequire leat v0.0.0\n"
                                         f"replace leat => {ROOT / 'clients/go'}\n", encoding="utf-8")
        (tmp_path / "main.go").write_text(GO % code, encoding="utf-8")
        output(["go", "build", "-o", program, "."], cwd=tmp_path, env=environment)
    else:
        program.write_text(code, encoding="utf-8")
    output(command, env=dict(environment, LEAT_DIR=str(leat.directory)))
    assert leat("sub", "orders", "--from", "beginning", "--exit").stdout.startswith("hello\n")
