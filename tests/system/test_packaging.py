"""If these tests failed, a user could not build a program with an installed Leat (by CMake or pkg-config),
or a moved clone would not build."""
import gzip
import os
import re
import shutil
import subprocess

import pytest

# Also checks that the installed headers cause no warnings with strict options.
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

# Two files of one program: one opens the topic and publishes, the other receives from it.
PUBLISHES = """\
#include <leat/leat.hpp>

std::size_t receive(leat::Subscriber& subscriber);

int main() {
  auto topic = leat::Topic::create("orders", {.capacity_bytes = 8 << 20});
  auto subscriber = topic->subscriber({.from = leat::From::beginning});
  if (!topic->publisher()->publish("first")) return 1;
  auto member = topic->group("workers", {.from = leat::From::beginning})->join();
  auto taken = member->receive(std::chrono::seconds{1});
  return taken && member->acknowledge(*taken) && receive(*subscriber) == 5 ? 0 : 1;
}
"""
RECEIVES = """\
#include <leat/leat.hpp>

std::size_t receive(leat::Subscriber& subscriber) {
  auto record = subscriber.receive(std::chrono::seconds{1});
  return record ? record->value.size() : 0;
}
"""
# The same with two versions of the library, which share only the name of the topic.
OLD_VERSION = """\
#include <leat/leat.hpp>

bool publish_with_the_old_version() {
  auto topic = leat::Topic::open_or_create("orders");
  return topic->publisher()->publish("first").has_value();
}
"""
NEW_VERSION = """\
#include <leat/leat.hpp>

bool publish_with_the_old_version();

int main() {
  if (!publish_with_the_old_version()) return 1;
  auto topic = leat::Topic::open("orders");
  auto subscriber = topic->subscriber({.from = leat::From::beginning});
  auto record = subscriber->receive(std::chrono::seconds{1});
  return record && record->text() == "first" ? 0 : 1;
}
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
    # No installed file may contain the path where it was built or staged.
    for path in (tmp_path / "usr/share").rglob("*"):
        if path.is_file():
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            for origin in (f"{root}/include", f"{root}/build", str(tmp_path)):
                assert origin.encode() not in content, path


def tell_loader(root, library, tmp_path, script=None, **variables):
    """What tools/after_install.sh says where that library was installed. `script`: what runs it, in a mount namespace of its own."""
    manifest = tmp_path / "manifest.txt"
    manifest.write_text(f"/somewhere/bin/leat\n{library}\n")
    own = [root / "tools" / "after_install.sh", manifest]
    command = own if script is None else ["unshare", "-m", "sh", "-ec", script, *own]
    return run(*command, env={**os.environ, **variables})


def test_install_says_what_programs_need_to_find_the_libraries(root, tmp_path):
    library = tmp_path / "lib" / "libleat.so.0"
    said = tell_loader(root, library, tmp_path)
    assert said.count("\n") == 1 and f"LD_LIBRARY_PATH={library.parent}," in said and "/etc/ld.so.conf.d" in said
    assert tell_loader(root, library, tmp_path, DESTDIR=str(tmp_path)) == ""


def test_install_tells_the_loader(root, leat_dir, as_root):
    """In a copy of /etc, where the place of the libraries is one of those that the loader searches."""
    leat_dir.chmod(0o755)  # Also another user gets there.
    shutil.copytree("/etc", leat_dir / "etc", symlinks=True)
    library = leat_dir / "lib" / "libleat.so.0"
    library.parent.mkdir()
    shutil.copy(root / "build" / "libleat.so.0", library)
    (leat_dir / "etc/ld.so.conf.d/test.conf").write_text(f"{library.parent}\n")
    script = shutil.copy(root / "tools" / "after_install.sh", leat_dir)
    etc = f"mount --bind {leat_dir}/etc /etc; "
    found = f"ldconfig -p | grep -c {library} || true"
    as_user = f'{etc}setpriv --reuid 65534 --regid 65534 --clear-groups sh {script} "$1"'
    said = tell_loader(root, library, leat_dir, as_user)
    assert said == f"note: run ldconfig as root, so that programs find the libraries in {library.parent}\n"
    assert tell_loader(root, library, leat_dir, etc + found) == "0\n"
    assert tell_loader(root, library, leat_dir, f'{etc}"$0" "$@"; {found}') == "1\n"


@pytest.mark.parametrize("name", ["leat", "leat-bench", "leat-lightq", "leat-serve"])
def test_installs_manual_page_and_completions(prefix, name):
    """As the installed executable itself makes them."""
    executable, share = prefix / "bin" / name, prefix / "share"
    page = gzip.decompress((share / f"man/man1/{name}.1.gz").read_bytes()).decode()
    assert page == run(executable, "man") and f"\n.TH {name.upper()} 1 " in page
    for shell, path in (("bash", f"bash-completion/completions/{name}"),
                        ("zsh", f"zsh/site-functions/_{name}"),
                        ("fish", f"fish/vendor_completions.d/{name}.fish")):
        assert (share / path).read_text() == run(executable, "completion", shell)


@pytest.mark.parametrize("target", ["leat::leat", "leat::compiled"])
def test_user_builds_with_find_package(prefix, user, leat_dir, target):
    lists = user / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("leat::leat", target))
    run("cmake", "-S", user, "-B", user / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_FLAGS={' '.join(WARNINGS)}")
    run("cmake", "--build", user / "build")
    run(user / "build" / "user", env={**os.environ, "LEAT_DIR": str(leat_dir)})


EMBEDS = """\
#include <cstdio>

#include <leat/broker.hpp>
#include <leat/leat.hpp>

int main() {
  leat::BrokerProblem problem;
  auto broker = leat::Broker::start({.settings = {{"lightq.port", "0"}}}, problem);
  if (broker == nullptr) std::fprintf(stderr, "%s\\n", problem.sentence.c_str());
  if (broker == nullptr || broker->lightq_port() == 0) return 1;
  broker->stop();
  return leat::Broker::start({.settings = {{"lightq.prot", "0"}}}, problem) == nullptr &&
                 problem.sentence.find("lightq.port") != std::string::npos
             ? 0
             : 2;
}
"""


def test_user_builds_with_the_broker_inside(prefix, tmp_path, leat_dir):
    (tmp_path / "embeds.cpp").write_text(EMBEDS)
    run("g++", "-std=c++20", *WARNINGS, tmp_path / "embeds.cpp",
        *pkg_config(prefix, "leat-broker", "--cflags", "--libs"), "-o", tmp_path / "embeds")
    run(tmp_path / "embeds",
        env={**os.environ, "LEAT_DIR": str(leat_dir), "XDG_DATA_HOME": str(tmp_path)})
    assert (tmp_path / "leat/+broker/admin-password").stat().st_mode & 0o777 == 0o600


def test_user_finds_the_broker_with_find_package(prefix, user, leat_dir):
    (user / "user.cpp").write_text(EMBEDS)
    lists = user / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("leat::leat", "leat::broker"))
    run("cmake", "-S", user, "-B", user / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", user / "build")
    run(user / "build" / "user", env={**os.environ, "LEAT_DIR": str(leat_dir), "XDG_DATA_HOME": str(user)})


def pkg_config(prefix, package, *words):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "share/pkgconfig")}
    return run("pkg-config", *words, package, env=environment).split()


@pytest.mark.parametrize("package", ["leat", "leat-compiled"])
@pytest.mark.parametrize("compiler", ["g++", "clang++-16"])
def test_user_builds_with_pkg_config(prefix, user, leat_dir, compiler, package):
    assert pkg_config(prefix, package, "--modversion") == ["0.1.0"]
    flags = pkg_config(prefix, package, "--cflags", "--libs")
    run(compiler, "-std=c++20", *WARNINGS, user / "user.cpp", *flags, "-o", user / "user")
    run(user / "user", env={**os.environ, "LEAT_DIR": str(leat_dir)})


LIGHTQ_PROGRAM = """\
#include <leat/lightq_api.h>
#include <lightq_api.h>
#include <stddef.h>

int main(void) {
  if (str_to_loglevel("warn") != LOG_WARNING) return 1;
  return init_producer("ann", "secret", "test", "tcp://127.0.0.1:1") == NULL ? 0 : 2;
}
"""


@pytest.mark.parametrize("kind", ["shared", "static"])
@pytest.mark.parametrize("compiler", ["gcc", "clang-16"])
def test_user_builds_in_c_with_the_functions_of_lightq(prefix, tmp_path, compiler, kind):
    assert pkg_config(prefix, "leat-lightq", "--modversion") == ["0.1.0"]
    (tmp_path / "user.c").write_text(LIGHTQ_PROGRAM)
    flags = pkg_config(prefix, "leat-lightq", "--cflags", "--libs",
                       *(["--static"] if kind == "static" else []))
    if kind == "static":  # As the linker would take the shared one, which lies beside it.
        flags = [flag.replace("-lleat-lightq", "-l:libleat-lightq.a") for flag in flags]
    run(compiler, "-std=c99", *WARNINGS, tmp_path / "user.c", *flags, "-o", tmp_path / "user")
    needs = "libleat-lightq.so.0" in run("readelf", "-d", tmp_path / "user")
    assert needs == (kind == "shared")
    directories = [flag.removeprefix("-L") for flag in flags if flag.startswith("-L")]
    run(tmp_path / "user", env={**os.environ, "LD_LIBRARY_PATH": ":".join(directories)})


@pytest.mark.parametrize("publishes, receives", [("leat", "leat-compiled"), ("leat-compiled", "leat")])
def test_header_only_and_compiled_files_in_one_program(prefix, tmp_path, leat_dir, publishes,
                                                       receives):
    for name, text, package in (("publishes", PUBLISHES, publishes),
                                ("receives", RECEIVES, receives)):
        (tmp_path / f"{name}.cpp").write_text(text)
        run("g++", "-std=c++20", *pkg_config(prefix, package, "--cflags"), "-c",
            tmp_path / f"{name}.cpp", "-o", tmp_path / f"{name}.o")
    run("g++", tmp_path / "publishes.o", tmp_path / "receives.o",
        *pkg_config(prefix, "leat-compiled", "--libs"), "-o", tmp_path / "program")
    run(tmp_path / "program", env={**os.environ, "LEAT_DIR": str(leat_dir)})


def test_two_versions_in_one_process(root, tmp_path, leat_dir):
    """As with a program and a plugin that were built with different versions."""
    old = tmp_path / "old/include"
    shutil.copytree(root / "include", old)
    renamed = 0
    for header in old.rglob("*.hpp"):
        text = header.read_text()
        renamed += text.count("inline v0")
        header.write_text(text.replace("inline v0", "inline v00"))
    assert renamed > 50
    for name, text, include in (("old", OLD_VERSION, old), ("new", NEW_VERSION, root / "include")):
        (tmp_path / f"{name}.cpp").write_text(text)
        run("g++", "-std=c++20", f"-I{include}", "-c", tmp_path / f"{name}.cpp", "-o",
            tmp_path / f"{name}.o")
    run("g++", tmp_path / "old.o", tmp_path / "new.o", "-pthread", "-o", tmp_path / "program")
    run(tmp_path / "program", env={**os.environ, "LEAT_DIR": str(leat_dir)})


def test_a_clone_that_was_moved_is_built_anew(root, tmp_path):
    """CMake rejects a build directory that was made at another path."""
    clone = tmp_path / "clone"
    (clone / "build").mkdir(parents=True)
    for name in ("CMakeLists.txt", "CMakePresets.json", "cmake", "include", "src", "tools"):
        (clone / name).symlink_to(root / name)
    (clone / "tools").unlink()  # Scripts in tools find the clone by their own path, so copy them.
    shutil.copytree(root / "tools", clone / "tools")
    (clone / "build/CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/nowhere/else\n")
    (clone / "build/old").touch()
    told = run(clone / "tools/configure.sh", "release")
    assert told == "build was made in /nowhere/else: making it anew\n"
    assert not (clone / "build/old").exists()
    assert run(clone / "tools/configure.sh", "release") == ""


@pytest.mark.parametrize("compiler", ["g++", "clang++-16"])
def test_an_older_standard_gets_one_error_that_says_what_to_do(root, tmp_path, compiler):
    """Before anything else that it does not understand, whichever public header comes first."""
    include = root / "include"
    headers = sorted([*include.glob("leat/*.hpp"), *include.glob("leat/compat/*.hpp")])
    assert include / "leat/leat.hpp" in headers
    for header in headers:
        source = tmp_path / "old.cpp"
        source.write_text(f"#include <{header.relative_to(include)}>\n")
        done = subprocess.run([compiler, "-std=c++17", "-fsyntax-only", "-Wfatal-errors",
                               f"-I{include}", source], capture_output=True, text=True, timeout=60)
        errors = re.findall(r"error: (.*)", done.stderr)
        assert len(errors) == 1, f"{header}: {done.stderr}"
        assert errors[0].endswith('"Leat needs C++20: compile with -std=c++20"'), header
        assert done.returncode != 0


def test_user_builds_with_add_subdirectory(root, user, leat_dir):
    """As with FetchContent: only the library is built, without our executables, tests or flags."""
    lists = CMAKE_LISTS.replace("find_package(leat 0.1 REQUIRED)",
                                f"add_subdirectory({root} leat)")
    (user / "CMakeLists.txt").write_text(lists)
    run("cmake", "-S", user, "-B", user / "build", "-G", "Ninja")
    run("cmake", "--build", user / "build")
    assert not (user / "build/leat/leat").exists()
    run(user / "build" / "user", env={**os.environ, "LEAT_DIR": str(leat_dir)})
