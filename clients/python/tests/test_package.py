"""The package: what the type checker says of it, what it exports, and who may import it.
If these failed, a type checker would refuse correct programs or pass wrong ones, or the module would crash what
imports it: a subinterpreter, or another version of Python."""
import ast
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import leat

PACKAGE = Path(leat.__file__).parent
GOOD = """
import array
import asyncio
import leat

topic: leat.Topic = leat.Topic.open_or_create("orders", policy="block", timestamps=True)
with topic.publisher(acknowledge="committed") as publisher:
    offset: int = publisher.publish(b"value", key=b"key", headers={b"name": b"value"}, timeout=1)
    publisher.publish_batch([b"one", bytearray(b"two"), leat.NewRecord(b"three", b"key"), array.array("I", [1])])
    with publisher.claim(5) as claim:
        claim.data[:] = b"hello"
with topic.subscriber(from_=leat.From.last(5)) as subscriber:
    for entry in subscriber.receive_batch(10, timeout=1):
        if isinstance(entry, leat.Gap):
            text: str = entry.reason
        else:
            value: bytes = entry.value
    with subscriber.view() as batch:
        for one in batch:
            if isinstance(one, leat.RecordView):
                view: memoryview = one.value
    rows: int = subscriber.read_into(bytearray(10))
member = topic.group("workers", from_="beginning").join(name="me")
delivery = member.receive()
if isinstance(delivery, leat.Delivery):
    count: int = member.acknowledge(delivery) + member.acknowledge([delivery])
index: int = leat.wait_any([subscriber])


async def main() -> None:
    first: int = await topic.publisher().publish_async(b"value", key=b"key", timeout=1)
    await topic.publisher().publish_batch_async([b"one"], partition=0)
    async for entry in subscriber:
        print(entry.offset, first)
    print((await member.receive_async(timeout=1)).partition)


try:
    asyncio.run(main())
except leat.Timeout as error:
    print(error.code, error.name, error.detail, leat.ERR_TIMEOUT)
"""
BAD = """
import leat

topic = leat.Topic.open("orders", policy="block")
topic.publisher().publish(b"value", keys=b"key")
topic.subscriber(from_="middle")
topic.subscriber().receive().value.upper()
leat.Topic.create("orders", policy="never")
leat.Topic()._private
leat.Record().value = b"x"
"""


def mypy(text, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    ran = subprocess.run(["/usr/bin/mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(path)],
                         env=dict(os.environ, MYPYPATH=str(PACKAGE.parent)), capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def test_stubs(tmp_path):
    assert mypy(GOOD, tmp_path)[0] == 0, mypy(GOOD, tmp_path)[1]
    status, said = mypy(BAD, tmp_path)
    assert status == 1
    for line in (4, 5, 6, 7, 8, 10):
        assert f"program.py:{line}:" in said, said


def names_of(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_stubs_name_everything():
    text = (PACKAGE / "__init__.pyi").read_text(encoding="utf-8")
    for name in names_of(leat):
        thing = getattr(leat, name)
        assert f" {name}(" in text or f"\n{name}:" in text or f" {name}:" in text, name
        if isinstance(thing, type) and thing.__module__.startswith("leat") and not issubclass(thing, (Exception, tuple)):
            for member in names_of(thing):
                assert f"def {member}(" in text, f"{name}.{member}"
    assert (PACKAGE / "py.typed").exists()


def parameters_of(node):
    """Of a function of the stubs: names, kinds, and whether there is a default."""
    args, found = node.args, []
    positional = args.posonlyargs + args.args
    without = len(positional) - len(args.defaults)
    for index, one in enumerate(positional):
        kind = "POSITIONAL_ONLY" if index < len(args.posonlyargs) else "POSITIONAL_OR_KEYWORD"
        found.append((one.arg, kind, index >= without))
    found += [(one.arg, "KEYWORD_ONLY", default is not None) for one, default in zip(args.kwonlyargs, args.kw_defaults)]
    return [one for one in found if one[0] != "self"]


def test_signatures_and_documentation():
    """help() and inspect.signature() show what the stubs say, and say what each is for."""
    stubs, compared = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8")), 0
    functions = [(leat, node) for node in stubs.body if isinstance(node, ast.FunctionDef)]
    for kind in (node for node in stubs.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"):
        thing = getattr(leat, kind.name, None) or getattr(leat._leat, kind.name)
        if issubclass(thing, (Exception, tuple)):
            continue
        assert thing.__doc__ or kind.name in ("Handle", "Stoppable"), kind.name
        functions += [(thing, node) for node in kind.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for thing, node in functions:
        if node.name.startswith("__"):
            continue
        said = getattr(thing, node.name)
        assert said.__doc__, (thing, node.name)
        marks = [getattr(mark, "id", "") for mark in node.decorator_list]
        if "property" in marks or "overload" in marks:
            continue
        signature = [(one.name, one.kind.name, one.default is not one.empty)
                     for one in inspect.signature(said).parameters.values() if one.name != "self"]
        assert signature == parameters_of(node), (thing, node.name)
        compared += 1
    assert compared > 50


def test_only_the_module_is_exported():
    library = next(PACKAGE.glob("_leat*.so"))
    assert library.name == "_leat.abi3.so"
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in listed.stdout.splitlines()] == ["PyInit__leat"]
    needed = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    assert "libleat" not in needed and "libstdc++" not in needed


@pytest.mark.parametrize("first", [False, True])
def test_other_interpreters_refuse_it(directory, first):
    """Whichever interpreter is the first to import it, the main one can use it."""
    code = f"""
import {"sys" if first else "leat"}
try:
    import _interpreters as interpreters
    run = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    run = interpreters.run_string
other = interpreters.create()
refused = 'try:\\n import leat\\nexcept ImportError: print("refused", flush=True)\\nelse: print("imported", flush=True)'
run(other, refused)
interpreters.destroy(other)
import asyncio, leat
topic = leat.Topic.create("topic")
topic.publisher().publish(b"x")
print(asyncio.run(topic.subscriber(from_="beginning").receive_async(5)).value)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.split() == ["refused", "b'x'"], ran.stderr


def other_pythons():
    """Other versions that are found, and run, beside Debian's."""
    found = {shutil.which(f"python3.{minor}") for minor in range(12, 20)} | {shutil.which("python3")}
    found -= {None, shutil.which(sys.executable)}
    return sorted(path for path in found if subprocess.run([path, "-c", ""], capture_output=True).returncode == 0)


@pytest.mark.parametrize("python", other_pythons())
def test_other_versions_of_python(python, directory):
    code = "import leat; print(leat.Topic.open_or_create('orders').publisher().publish(b'x'))"
    ran = subprocess.run([python, "-c", code], env=dict(os.environ, PYTHONPATH=str(PACKAGE.parent)),
                         capture_output=True, text=True)
    assert ran.stdout == "0\n", ran.stderr
