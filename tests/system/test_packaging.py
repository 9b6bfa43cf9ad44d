"""`make install`, and a ten-line program built on what it installed: by CMake and by pkg-config."""
import os
import re
import subprocess

import pytest

# Also shows that the installed headers are clean for users with strict compilers.
WARNINGS = ["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]

PROGRAM = """\
#include <leat/leat.hpp>

int main() {
  auto topic = leat::Topic::create("orders", {.capacity_bytes = 8 << 20});
  auto publisher = topic->publisher();
  auto subscriber = topic->subscriber({.from = leat::From::beginning});
  int seen = 0;
  if (!publisher->publish(std::as_bytes(std::span("first")))) return 1;
  (void)subscriber->poll(100, [&](const leat::Record& record) { seen += record.value.size() == 6; });
  return seen == 1 ? 0 : 1;
}
"""

CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.25)
project(user CXX)
find_package(leat 0.1 REQUIRED)
add_executable(user user.cpp)
target_link_libraries(user leat::leat)
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=300, **options)
    assert done.returncode == 0, f"{command} exited {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def make_install(root, **variables):
    run("make", "install", *(f"{name}={value}" for name, value in variables.items()), cwd=root,
        env={**os.environ, "LEAT_SKIP_DEPS": "1"})


@pytest.fixture(scope="module")
def prefix(request, tmp_path_factory):
    """A directory with Leat installed below it."""
    path = tmp_path_factory.mktemp("prefix")
    make_install(request.config.rootpath, PREFIX=path)
    return path


@pytest.fixture
def user(tmp_path):
    (tmp_path / "user.cpp").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE_LISTS)
    return tmp_path


def files_below(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*.hpp"))


def test_installs_every_header_and_the_executable(root, prefix):
    assert files_below(prefix / "include") == files_below(root / "include")
    version = run(prefix / "bin" / "leat", "--version")
    assert re.search(r"\b0\.1\.0\b", version)


def test_version_names_the_commit(root, prefix):
    commit = subprocess.run(["git", "-c", f"safe.directory={root}", "-C", root, "rev-parse",
                             "--short=12", "HEAD"], capture_output=True, text=True)
    expected = commit.stdout.strip() if commit.returncode == 0 else "unknown"
    assert expected in run(prefix / "bin" / "leat", "--version")


def test_destdir_goes_before_the_prefix(root, tmp_path):
    make_install(root, DESTDIR=tmp_path, PREFIX="/usr")
    assert (tmp_path / "usr/bin/leat").exists()
    assert (tmp_path / "usr/include/leat/leat.hpp").exists()
    # Nothing that is installed may remember where it was built or staged.
    for path in (tmp_path / "usr/share").rglob("*"):
        if path.is_file():
            text = path.read_text()
            for origin in (f"{root}/include", f"{root}/build", str(tmp_path)):
                assert origin not in text, path


def test_user_builds_with_find_package(prefix, user, leat_dir):
    run("cmake", "-S", user, "-B", user / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_FLAGS={' '.join(WARNINGS)}")
    run("cmake", "--build", user / "build")
    run(user / "build" / "user", env={**os.environ, "LEAT_DIR": str(leat_dir)})


@pytest.mark.parametrize("compiler", ["g++", "clang++-16"])
def test_user_builds_with_pkg_config(prefix, user, leat_dir, compiler):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "share/pkgconfig")}
    assert run("pkg-config", "--modversion", "leat", env=environment).strip() == "0.1.0"
    flags = run("pkg-config", "--cflags", "--libs", "leat", env=environment).split()
    run(compiler, "-std=c++20", *WARNINGS, user / "user.cpp", *flags, "-o", user / "user")
    run(user / "user", env={**os.environ, "LEAT_DIR": str(leat_dir)})


def test_user_builds_with_add_subdirectory(root, user, leat_dir):
    """As with FetchContent: the library only, none of our executables, tests or flags."""
    lists = CMAKE_LISTS.replace("find_package(leat 0.1 REQUIRED)",
                                f"add_subdirectory({root} leat)")
    (user / "CMakeLists.txt").write_text(lists)
    run("cmake", "-S", user, "-B", user / "build", "-G", "Ninja")
    run("cmake", "--build", user / "build")
    assert not (user / "build/leat/leat").exists()
    run(user / "build" / "user", env={**os.environ, "LEAT_DIR": str(leat_dir)})
