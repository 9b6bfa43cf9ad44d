"""If these tests failed, programs in C would not compile or run with an installed libleat, would get other
functions than they were compiled for, or would clash with what else is in their process."""
import os
import re
import shutil
import subprocess

import pytest
from run import chosen

# `prefix` is a fixture: a directory with Leat installed below it.
from test_packaging import WARNINGS, pkg_config, prefix, run  # noqa: F401

@pytest.fixture
def library(request):
    from conftest import EXECUTABLE
    path = EXECUTABLE.parent / "libleat.so"
    assert path.exists(), "build leat_c_shared first"
    return path


def exported(library):
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                          check=True)
    return {line.split()[2].split("@")[0] for line in done.stdout.splitlines()} - {"LEAT_0"}


def declared(root):
    return set(re.findall(r"^LEAT_API [\w *]*?(leat_\w+)\(",
                          (root / "src/capi/leat.h").read_text(), re.M))


def test_exports_what_the_header_declares_and_nothing_else(library, root):
    # Breaks: a program with another Leat, or another C++ library, gets ours.
    assert exported(library) == declared(root) and len(declared(root)) > 70
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", library))
    assert set(needed) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, needed


def test_static_library_has_no_other_names(library, root):
    # Breaks: a C++ program that links libleat_compiled.a too.
    listing = run("nm", "-g", "--defined-only", library.with_suffix(".a"))
    assert set(re.findall(r"^\w+ \w (\w+)$", listing, re.M)) == declared(root)


def test_library_stays_loaded_and_reads_thread_local_variables_directly(library):
    dynamic = run("readelf", "-d", library)
    assert "NODELETE" in dynamic and "STATIC_TLS" in dynamic and "libleat.so.0]" in dynamic


def test_codes_are_those_of_the_list(root):
    run("python3", root / "tools/errors.py", "--check")


def abi(root, library, *words):
    return subprocess.run([root / "tools/abi.sh", library, *words], capture_output=True, text=True,
                          timeout=120)


def test_abi_is_what_programs_rely_on(library, root):
    # Breaks: every program that was compiled with an older leat.h.
    done = abi(root, library)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("old, new", [
    ("name='leat_claim' size-in-bits='256'", "name='leat_claim' size-in-bits='320'"),
    ("name='key_size'", "name='headers_size'"),
    ("'leat_publisher_abort'", "'leat_publisher_cancel'"),
    ("<elf-symbol name='leat_version'", "<elf-symbol name='leat_versions'"),
])
def test_changes_of_the_abi_are_noticed(library, root, tmp_path, old, new):
    text = (root / "tests/capi/libleat.abi").read_text()
    assert old in text
    (tmp_path / "changed.abi").write_text(text.replace(old, new))
    done = abi(root, library, tmp_path / "changed.abi")
    assert done.returncode & 4, done.stdout + done.stderr


def test_additions_to_the_abi_are_allowed(library, root, tmp_path):
    text = (root / "tests/capi/libleat.abi").read_text()
    without = re.sub(r" *<elf-symbol name='leat_version'.*\n", "", text)
    without = re.sub(r" *<function-decl name='leat_version'.*?</function-decl>\n", "", without, flags=re.S)
    assert without != text
    (tmp_path / "older.abi").write_text(without)
    done = abi(root, library, tmp_path / "older.abi")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["shared", "static"])
@pytest.mark.parametrize("compiler, standard",
                         [("gcc", "c99"), ("clang-16", "c99"), ("g++", "c++11"), ("gcc", "c2x")])
def test_user_builds_the_example(prefix, root, tmp_path, leat_dir, compiler, standard, kind):
    assert pkg_config(prefix, "libleat", "--modversion") == ["0.1.0"]
    flags = pkg_config(prefix, "libleat", "--cflags", "--libs",
                       *(["--static"] if kind == "static" else []))
    if kind == "static":  # As the linker would take the shared one, which lies beside it.
        flags = [flag.replace("-lleat", "-l:libleat.a") for flag in flags]
    source = shutil.copy(root / "examples/clients/c/hello.c",
                         tmp_path / ("hello.cpp" if compiler == "g++" else "hello.c"))
    run(compiler, f"-std={standard}", *WARNINGS, source, *flags, "-o", tmp_path / "hello")
    assert ("libleat.so.0" in run("readelf", "-d", tmp_path / "hello")) == (kind == "shared")
    directories = [flag.removeprefix("-L") for flag in flags if flag.startswith("-L")]
    environment = {**os.environ, "LEAT_DIR": str(leat_dir), "LD_LIBRARY_PATH": ":".join(directories)}
    assert run(tmp_path / "hello", env=environment) == "hello from C\n"


@pytest.mark.skipif("c" not in chosen(), reason="left out by CLIENTS")
def test_debian_packages_install_into_an_empty_place(root, leat, tmp_path):
    # Breaks: what a program needs to be compiled, or to run, is in neither of the two.
    packages = sorted((root / "build/clients").glob("libleat*.deb"))
    assert [package.name.split("_")[0] for package in packages] == ["libleat-dev", "libleat0"]
    for package in packages:
        run("dpkg", "-x", package, tmp_path)
    run("gcc", root / "examples/clients/c/hello.c", f"-I{tmp_path}/usr/include", f"-L{tmp_path}/usr/lib", "-lleat",
        "-o", tmp_path / "hello")
    said = run(tmp_path / "hello", env={**leat.environment, "LD_LIBRARY_PATH": f"{tmp_path}/usr/lib"})
    assert said == "hello from C\n"
    assert leat("sub", "greetings", "--from", "beginning", "--exit").stdout == said


def test_two_copies_get_along(library, root, tmp_path, leat_dir):
    # Breaks: a Python extension and a Ruby one, each with its library, in one process.
    other = tmp_path / "libleat-other.so"
    shutil.copy(library, other)
    run("gcc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", f"-I{library.parent / 'capi'}",
        root / "tests/system/two_copies.c", "-ldl", "-o", tmp_path / "two")
    run("timeout", "60", tmp_path / "two", library, other, env={**os.environ, "LEAT_DIR": str(leat_dir)})


def test_json_is_that_of_the_executable(library, leat, monkeypatch):
    import ctypes
    leat("topic", "create", "orders", "--partitions", "2", check=True)
    leat("pub", "orders", "hello", check=True)
    c = ctypes.CDLL(str(library))
    topic, size = ctypes.c_void_p(), ctypes.c_uint64()
    monkeypatch.setenv("LEAT_DIR", str(leat.directory))  # Seen by the library, which is in this process.
    assert c.leat_topic_open(b"orders", ctypes.c_uint64(6), ctypes.c_int64(0), None, ctypes.byref(topic),
                             None) == 0
    text = ctypes.create_string_buffer(1 << 16)
    assert c.leat_topic_get_json(topic, text, ctypes.c_uint64(len(text)), ctypes.byref(size), None) == 0
    printed = leat("topic", "info", "orders", "--json", check=True).stdout
    assert text.raw[:size.value].decode() + "\n" == printed
    assert c.leat_topic_close(ctypes.byref(topic)) == 0
