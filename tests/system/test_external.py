"""If these tests failed, `leat NAME` would not find leat-NAME, or would not say how to get it."""
import shutil

import pytest

from test_cli import NOBODY, one_line, run_as


@pytest.fixture
def alone(leat, tmp_path):
    """`leat` in a directory of its own: nothing of Leat is next to it or in $PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "path").mkdir()
    leat.executable = shutil.copy(leat.executable, tmp_path / "bin" / "leat")
    leat.environment["PATH"] = str(tmp_path / "path")
    return leat


def script(path):
    path.write_text('#!/bin/sh\necho "$0" "$@"\nexit 7\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name, how", [("bench", "make bench-build"), ("lightq", "make serve"),
                                       ("serve", "make serve")])
def test_missing_executable_says_how_to_get_it(alone, name, how):
    one_line(alone(name, "--help"), 3, f"`leat {name}` needs leat-{name}", "neither beside leat nor in $PATH", how)


def test_what_nobody_knows_is_no_executable(alone):
    one_line(alone("hello"), 2, "no command 'hello'")


@pytest.mark.parametrize("place", ["bin", "path"])
def test_any_executable_is_a_command(alone, tmp_path, place):
    hello = script(tmp_path / place / "leat-hello")
    done = alone("hello", "-x", "two words")
    assert (done.returncode, done.stdout, done.stderr) == (7, f"{hello} -x two words\n", "")


def test_what_is_in_the_way_in_path_is_no_command(alone, tmp_path, as_root):
    """After `su`, $PATH often has directories that the user may not search."""
    (tmp_path / "path" / "leat-sbu").mkdir()
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o700)
    alone.environment["PATH"] = f"{locked}:/etc/passwd::{tmp_path}/path"
    tmp_path.chmod(0o755)
    one_line(run_as(alone, NOBODY, "sbu"), 2, "no command 'sbu'", "did you mean 'sub'?")


def test_own_commands_come_first(alone, tmp_path):
    script(tmp_path / "path" / "leat-version")
    assert alone("version", check=True).stdout.startswith("leat ")


def test_executable_that_cannot_be_run_is_an_error(alone, tmp_path):
    script(tmp_path / "bin" / "leat-hello").chmod(0o644)
    one_line(alone("hello"), 4, "cannot run leat-hello: Permission denied")
