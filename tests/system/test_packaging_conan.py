"""The recipe in packaging/conan: Conan builds the package, and its test_package runs on it."""
import os
import shutil
import subprocess
import sys

import pytest

from test_packaging import run

WANTED = "conan>=2.1,<3"


@pytest.fixture(scope="module")
def conan(request):
    """The program: of $PATH, or from PyPI into build/conan, as Debian has none. Nothing else needs more than Debian."""
    found = shutil.which("conan")
    if found:
        return found
    place = request.config.rootpath / "build" / "conan"
    program = place / "bin" / "conan"
    try:
        subprocess.run([program, "--version"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        run(sys.executable, "-m", "venv", "--clear", place)
        fetched = subprocess.run([place / "bin" / "python", "-m", "pip", "install", "--quiet", "--retries", "1", WANTED],
                                 capture_output=True, text=True, timeout=300, check=False)
        if "connection broken" in fetched.stderr:
            pytest.skip("no conan in $PATH, and PyPI is out of reach")
        assert fetched.returncode == 0, fetched.stderr
    return program


def sources(root):
    return sorted(path for path in (root / "packaging").rglob("*") if "__pycache__" not in path.parts)


def test_package_is_built_and_used(conan, root, tmp_path, leat_dir):
    environment = {**os.environ, "CONAN_HOME": str(tmp_path), "LEAT_DIR": str(leat_dir)}
    before = sources(root)
    run(conan, "profile", "detect", env=environment)
    done = subprocess.run([conan, "create", root / "packaging" / "conan", "-s",
                           "compiler.cppstd=20", "-c", "tools.cmake.cmake_layout:test_folder=$TMP"],
                          env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout + done.stderr
    # Both of its programs published a record and read it.
    assert printed.splitlines().count("hello") == 2, printed
    listed = run(conan, "list", "leat/*:*", env=environment)
    assert "leat/0.1.0" in listed and "compiler.cppstd: 20" in listed
    package = next(tmp_path.glob("p/b/*/p"))
    assert (package / "include/leat/leat.hpp").exists()
    assert (package / "lib/libleat_compiled.a").exists()
    assert (package / "licenses/LICENSE").exists()
    assert sources(root) == before  # Nothing is left among the sources.


def test_what_leat_does_not_run_on_is_refused(conan, root, tmp_path):
    environment = {**os.environ, "CONAN_HOME": str(tmp_path)}
    run(conan, "profile", "detect", env=environment)
    for setting, word in (("compiler.cppstd=17", "20"), ("arch=armv8", "x86-64")):
        done = subprocess.run([conan, "create", root / "packaging" / "conan", "-s",
                               "compiler.cppstd=20", "-s", setting, "--test-folder="],
                              env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode != 0 and "Invalid" in done.stderr and word in done.stderr, done.stderr
