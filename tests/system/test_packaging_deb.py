"""`make deb`: what the packages are, hold, and are good for once unpacked."""
import gzip
import os
import re
import subprocess

import pytest

from test_packaging import PROGRAM, WARNINGS, files_below, pkg_config, run

PACKAGES = ["leat", "leat-bench", "leat-lightq", "leat-serve", "libleat-broker-dev",
            "libleat-cpp-dev", "libleat-dev", "libleat-lightq-dev", "libleat0"]
MAINTAINER = "A. Builder <builder@leat.example>"


@pytest.fixture(scope="module")
def debs(request):
    """Name of the package -> its file. Made of the build that is there."""
    root = request.config.rootpath
    run("make", "deb", cwd=root,
        env={**os.environ, "LEAT_SKIP_DEPS": "1", "DEBFULLNAME": "A. Builder",
             "DEBEMAIL": "builder@leat.example"})
    files = {path.name.split("_")[0]: path for path in (root / "build" / "deb").iterdir()}
    assert sorted(files) == PACKAGES
    return files


@pytest.fixture(scope="module")
def tree(debs, tmp_path_factory):
    """All of them, unpacked into one place."""
    path = tmp_path_factory.mktemp("tree")
    for deb in debs.values():
        run("dpkg-deb", "-x", deb, path)
    return path


def field(deb, name):
    return run("dpkg-deb", "-f", deb, name).strip()


@pytest.mark.parametrize("name, section, depends", [
    ("leat", "utils", ["libc6", "libfmt", "libstdc++6"]),
    ("leat-bench", "utils", ["libc6", "libfmt", "libstdc++6", "libzmq", "libnng", "libsqlite3",
                              "liburing"]),
    ("leat-lightq", "net", ["libc6", "libstdc++6"]),
    ("leat-serve", "net", ["libc6", "libfmt", "libspdlog", "libssl", "libsodium", "libargon2", "libsqlite3",
                           "libstdc++6"]),
    ("libleat-broker-dev", "libdevel", ["libleat-cpp-dev", "libspdlog-dev", "libssl-dev"]),
    ("libleat-cpp-dev", "libdevel", []),
    ("libleat-dev", "libdevel", ["libleat0 (= 0.1.0-1)"]),
    ("libleat-lightq-dev", "libdevel", ["libc6", "libstdc++6"]),
    ("libleat0", "libs", ["libc6"]),
], ids=PACKAGES)
def test_package_says_what_it_is(debs, name, section, depends):
    deb = debs[name]
    assert deb.name == f"{name}_0.1.0-1_amd64.deb"
    assert field(deb, "Package") == name and field(deb, "Version") == "0.1.0-1"
    assert field(deb, "Maintainer") == MAINTAINER and field(deb, "Section") == section
    summary, *description = field(deb, "Description").splitlines()
    assert 10 < len(summary) < 60 and len(description) >= 2
    # One space, and a dot for an empty line; two would mean "as it is".
    assert all(re.fullmatch(r" (?:\.|[^ .].{,78})", line) for line in description)
    given = field(deb, "Depends")
    if not depends:
        assert given == ""
    for wanted in depends:
        assert re.search(rf"(?:^|, ){re.escape(wanted)}[\w.-]*[, ]", given + " "), given


@pytest.mark.parametrize("name", PACKAGES)
def test_package_holds_only_its_own_files_and_what_debian_wants(debs, name):
    listing = run("dpkg-deb", "-c", debs[name]).splitlines()
    paths = {line.split()[5].removeprefix("./") for line in listing}
    documents = {f"usr/share/doc/{name}/{file}"
                 for file in ("copyright", "changelog.gz", "changelog.Debian.gz")}
    assert documents <= paths
    for line in listing:
        mode, owner = line.split()[:2]
        assert owner == "root/root", line
        assert mode[0] == "l" or mode[5] == "-" and mode[8] == "-", line
    has_headers = "usr/include/leat/leat.hpp" in paths
    assert has_headers == (name == "libleat-cpp-dev")
    assert ("usr/include/leat/broker.hpp" in paths) == (name == "libleat-broker-dev")
    for path in "usr/include/leat/lightq_api.h", "usr/share/pkgconfig/leat-lightq.pc":
        assert (path in paths) == (name == "libleat-lightq-dev")
    for path in "usr/include/leat/leat.h", "usr/share/pkgconfig/libleat.pc":
        assert (path in paths) == (name == "libleat-dev")
    assert any(path.endswith("/libleat.so.0") for path in paths) == (name == "libleat0")
    assert any(path.endswith(("/libleat.so", "/libleat.a")) for path in paths) == (name == "libleat-dev")
    for executable in ("leat", "leat-bench", "leat-lightq", "leat-serve"):
        of_it = {f"usr/bin/{executable}", f"usr/share/man/man1/{executable}.1.gz",
                 f"usr/share/bash-completion/completions/{executable}",
                 f"usr/share/zsh/vendor-completions/_{executable}",
                 f"usr/share/fish/vendor_completions.d/{executable}.fish"}
        assert of_it <= paths if name == executable else not of_it & paths


def test_changelog_is_as_debian_reads_it(tree):
    text = gzip.decompress(
        (tree / "usr/share/doc/leat/changelog.Debian.gz").read_bytes()).decode()
    done = subprocess.run(["dpkg-parsechangelog", "-l", "-"], input=text, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "Version: 0.1.0-1\n" in done.stdout and f"Maintainer: {MAINTAINER}\n" in done.stdout


def test_unpacked_executables_work(tree, leat_dir):
    environment = {**os.environ, "LEAT_DIR": str(leat_dir)}
    leat = tree / "usr/bin/leat"
    assert "0.1.0" in run(leat, "--version")
    run(leat, "topic", "create", "t", env=environment)
    assert run(leat, "ls", env=environment).splitlines()[1].startswith("t ")
    assert "latency" in run(leat, "bench", "--help")  # The leat-bench beside it.
    # As a person does who looks something up.
    assert "leat topic create" in run("man", "-l", tree / "usr/share/man/man1/leat.1.gz",
                                      env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "200"})


def test_user_builds_on_the_unpacked_library(tree, root, tmp_path, leat_dir):
    assert files_below(tree / "usr/include") == files_below(root / "include")
    (tmp_path / "user.cpp").write_text(PROGRAM)
    for package in ("leat", "leat-compiled"):
        flags = pkg_config(tree / "usr", package, "--cflags", "--libs")
        assert f"{tree}/usr/" in os.path.normpath(flags[0].removeprefix("-I")) + "/"
        run("g++", "-std=c++20", *WARNINGS, tmp_path / "user.cpp", *flags, "-o", tmp_path / "user")
        topics = leat_dir / package
        topics.mkdir()
        run(tmp_path / "user", env={**os.environ, "LEAT_DIR": str(topics)})


def test_static_library_has_no_debug_information(tree):
    library, = (tree / "usr/lib").rglob("libleat_compiled.a")
    assert ".debug_info" not in run("readelf", "-SW", library)
