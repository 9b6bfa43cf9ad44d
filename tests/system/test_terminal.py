"""What a person sees at the terminal: help that is wrapped, colours where they belong, completion, and
the manual page."""
import os
import re
import shutil
import subprocess

import pytest

from terminal import Terminal

ESCAPE = "\x1b["


# leat-bench and leat-lightq are executables of their own, with manual pages of their own.
of_each_executable = pytest.mark.parametrize("executable", [[], ["bench"], ["lightq"]],
                                             ids=["leat", "bench", "lightq"])
of_each_with_serve = pytest.mark.parametrize("executable", [[], ["bench"], ["lightq"], ["serve"]],
                                             ids=["leat", "bench", "lightq", "serve"])


def commands_of(leat, *command):
    """The command and all below it in the same executable, as their help lists them."""
    text = leat(*command, "--help", check=True).stdout
    yield command, text
    listed = text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
    for name in re.findall(r"^  ([a-z]+)", listed, re.M):
        if (*command, name) not in (("bench",), ("lightq",), ("serve",)):
            yield from commands_of(leat, *command, name)


# --- Help -----------------------------------------------------------------------------------------

def help_text(leat, *command, **environment):
    done = subprocess.run([leat.executable, *command, "--help"], capture_output=True, text=True,
                          env={**leat.environment, **environment}, timeout=60, check=True)
    return done.stdout


def words(text):
    return text.split()


@pytest.mark.parametrize("columns", [40, 80, 100])
@of_each_executable
def test_help_is_wrapped_between_words(leat, executable, columns):
    for command, usual in commands_of(leat, *executable):
        text = help_text(leat, *command, COLUMNS=str(columns))
        assert words(text) == words(usual), command  # No word is broken, none is lost.
        for line in text.splitlines():
            is_one_word = len(line.split()) == 1
            is_left_column = re.match(r"  \S", line)  # An option, or an example.
            assert len(line) <= columns or is_one_word or is_left_column or "Usage:" in line, line


@of_each_with_serve
def test_help_says_what_values_are(leat, executable):
    """And not only their types, as CLI11 does unless told otherwise."""
    for command, text in commands_of(leat, *executable):
        types = re.findall(r"^  (\S+) .*\b(TEXT|U?INT|FLOAT|NUMBER|BOOLEAN|ENUM|PATH\(\w+\))\b", text, re.M)
        assert [found for found in types if found != ("-D,--delimiter", "TEXT")] == [], command


def test_help_is_80_wide_where_no_terminal_says_otherwise(leat):
    wide = {name: value for name, value in leat.environment.items() if name != "COLUMNS"}
    done = subprocess.run([leat.executable, "topic", "create", "--help"], capture_output=True,
                          text=True, env=wide, timeout=60, check=True)
    assert done.stdout == help_text(leat, "topic", "create", COLUMNS="80")
    assert 75 < max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("columns, expected", [(50, 50), (90, 90), (200, 100)])
def test_help_is_as_wide_as_the_terminal(leat, columns, expected):
    with Terminal(leat, "topic", "create", "--help", columns=columns) as terminal:
        shown = terminal.all().replace("\r\n", "\n")
    assert shown == help_text(leat, "topic", "create", COLUMNS=str(expected))


def test_who_forgets_the_message_is_told_that_lines_are_read(leat):
    with Terminal(leat, "pub", "news") as terminal:
        terminal.until("leat: reading lines from the terminal; Ctrl-D ends\r\n")
        terminal.write("hello\n\x04")
        assert terminal.process.wait(20) == 0
    assert leat("sub", "news", "--from", "beginning", "--exit", check=True).stdout == "hello\n"
    assert "reading" not in leat("pub", "news", input="more\n", check=True).stderr


def test_nonsense_in_columns_is_no_reason_to_fail(leat):
    for columns in ("", "0", "-5", "wide", "99999999999999999999"):
        assert help_text(leat, COLUMNS=columns) == help_text(leat, COLUMNS="80")


# --- Colours --------------------------------------------------------------------------------------

COLOURED = [["ls"], ["topic", "info", "t"], ["top", "-n", "1"], ["doctor"],
            ["demo", "--records", "100", "--runs", "1"]]


def without_colours(text):
    return re.sub(r"\x1b\[\d*m", "", text)


@pytest.mark.parametrize("command", COLOURED, ids=lambda command: command[0])
def test_colours_are_for_terminals_only(leat, command):
    leat("topic", "create", "t", check=True)
    assert ESCAPE not in leat(*command, check=True).stdout
    with Terminal(leat, *command, columns=200, rows=100) as terminal:
        shown = terminal.all(60)
    assert re.search(r"\x1b\[(?:1|3[123])m", shown)
    assert re.findall(r"\x1b\[\d*m", shown)[-1] == "\x1b[0m"


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_who_wants_no_colours_gets_none(leat, environment):
    leat("topic", "create", "t", check=True)
    for command in COLOURED:
        with Terminal(leat, *command, environment=environment) as terminal:
            assert not re.search(r"\x1b\[\d*m", terminal.all(60)), command
    with Terminal(leat, "ls", environment={"NO_COLOR": ""}) as terminal:
        assert ESCAPE in terminal.all()  # Set, but to nothing: no-color.org.


def test_columns_stand_below_their_heads_in_colour_too(leat):
    leat("topic", "create", "t", check=True)
    plain = leat("topic", "info", "t", check=True).stdout
    with Terminal(leat, "topic", "info", "t", columns=200) as terminal:
        assert without_colours(terminal.all()).replace("\r\n", "\n") == plain


# --- Completion -----------------------------------------------------------------------------------

CASES = [
    ("leat topic cr", ["create"]),
    ("leat topic create new --pol", ["--policy"]),
    ("leat topic create new --policy g", ["grow"]),
    ("leat topic create new --policy=g", ["grow"]),
    ("leat topic info ne", ["news"]),
    ("leat topic info --dir DIRECTORY o", ["orders"]),
    ("leat sub orders --group w", ["workers"]),
    ("leat group info orders ", ["workers"]),
    ("leat group list o", ["orders"]),
    ("leat topic create o", []),
    ("leat --dir DIRECTORY/below/fi", ["first/"]),
    ("leat --dir=DIRECTORY/below/fi", ["first/"]),
    ("leat pub news --file=DIRECTORY/below/fi", ["first/"]),
    ("leat topic create new --durable i", []),
    ("leat sub news --from be", ["beginning"]),
    ("leat bench la", ["latency"]),
    ("leat help topic cr", ["create"]),
    ("leat rm news o", ["orders"]),
    ("leat sub --from end news o", ["orders"]),
    ("leat pub news o", []),
]


@pytest.fixture
def shell_environment(leat):
    """With `leat` in $PATH, and two topics."""
    leat("topic", "create", "news", check=True)
    leat("topic", "create", "orders", check=True)
    leat("group", "create", "orders", "workers", check=True)
    (leat.directory / "below" / "first").mkdir(parents=True)
    return {**leat.environment, "PATH": f"{leat.executable.parent}:{os.environ['PATH']}",
            "HOME": str(leat.directory), "TERM": "dumb"}


def typed(case, leat):
    return case.replace("DIRECTORY", str(leat.directory))


def script(leat, shell, directory):
    path = directory / f"completion.{shell}"
    path.write_text(leat("completion", shell, check=True).stdout)
    return path


def run_shell(environment, *command):
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.splitlines()


def last_parts(lines):
    """What completes the last part of a path, or of --option=value."""
    return [re.split(r"=|/(?=.)", line)[-1].rstrip() for line in lines]


@pytest.mark.parametrize("case, expected", CASES, ids=[case for case, _ in CASES])
def test_bash_completes(leat, shell_environment, tmp_path, case, expected):
    line = typed(case, leat)
    # As readline does: it takes words apart at = and :, too.
    pieces = [piece for word in line.split(" ") for piece in re.split("(=)", word)]
    quoted = " ".join(f"'{piece}'" for piece in pieces)
    found = run_shell(shell_environment, "bash", "--norc", "-c",
                      f"source {script(leat, 'bash', tmp_path)}; COMP_WORDS=({quoted}); "
                      f"COMP_CWORD={len(pieces) - 1}; "
                      "complete -p leat >/dev/null && _leat_complete && "
                      "printf '%s\\n' \"${COMPREPLY[@]}\"")
    assert [part.rstrip("/") for part in last_parts(found) if part] == \
        [part.rstrip("/") for part in expected]


@pytest.mark.parametrize("case, expected", CASES, ids=[case for case, _ in CASES])
def test_fish_completes(leat, shell_environment, tmp_path, case, expected):
    found = run_shell(shell_environment, "fish", "--no-config", "-c",
                      f"source {script(leat, 'fish', tmp_path)}; "
                      f"complete -C '{typed(case, leat)}'")
    assert last_parts([line.split("\t")[0] for line in found]) == \
        [part.rstrip("/") if "/" not in part else part for part in expected]


ZSH = """\
autoload -U compinit; compinit -u -D
source {script}
zstyle ':completion:*' list-colors ''
setopt no_beep
PROMPT='> '
# What is typed so far, when TAB has done its work.
show() {{ zle complete-word; print -r -- "<<$BUFFER>>"; exit }}
zle -N show
bindkey '^I' show
print -r -- ready
"""


@pytest.mark.parametrize("case, expected", CASES, ids=[case for case, _ in CASES])
def test_zsh_completes(leat, shell_environment, tmp_path, case, expected):
    (tmp_path / ".zshrc").write_text(ZSH.format(script=script(leat, "zsh", tmp_path)))
    leat.executable, executable = shutil.which("zsh"), leat.executable
    assert leat.executable is not None, "zsh is missing: run tools/install-deps.sh test"
    try:
        terminal = Terminal(leat, "-i", columns=200,
                            environment={**shell_environment, "ZDOTDIR": str(tmp_path)})
    finally:
        leat.executable = executable
    line = typed(case, leat)
    with terminal:
        terminal.until("> ")
        terminal.write(line + "\t")
        text = terminal.until(lambda shown: re.search(r"<<.*>>", shown))
    completed = re.search(r"<<(.*)>>", text).group(1)
    if not expected:
        assert completed == line
    else:
        assert completed.rstrip(" /").endswith(expected[0].rstrip("/"))
        assert completed.startswith(line)


def test_shell_that_is_not_known_is_named(leat):
    for arguments in ([], ["csh"]):
        done = leat("completion", *arguments)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr == ("leat: `leat completion` needs the name of a shell: bash, zsh or "
                               "fish\n")


@of_each_executable
def test_every_option_of_the_help_completes(leat, executable):
    """So that what the TAB key offers can't be out of date."""
    for command, text in commands_of(leat, *executable):
        offered = {line.split("\t")[0]
                   for line in leat("complete", *command, "--", check=True).stdout.splitlines()}
        assert set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", text, re.M)) <= offered, command
        below = text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
        offered = {line.split("\t")[0]
                   for line in leat("complete", *command, "", check=True).stdout.splitlines()}
        assert set(re.findall(r"^  ([a-z]+)", below, re.M)) <= offered, command


# --- The manual page ------------------------------------------------------------------------------

def manual(page):
    """As a person reads it."""
    done = subprocess.run(["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-P-cbou", "-rLL=200n"],
                          input=page, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


@of_each_executable
def test_manual_page_has_what_every_help_has(leat, executable):
    text = manual(leat(*executable, "man", check=True).stdout)
    assert text.startswith("-".join(["leat", *executable]).upper() + "(1)")
    shown = " ".join(text.split())
    for command, page in commands_of(leat, *executable):
        assert f" {' '.join(['leat', *command])} " in shown
        for option in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", page, re.M):
            assert option in shown, (command, option)
        for example in re.findall(r"^  ((?:leat|echo) .*)", page.partition("\nExample")[2], re.M):
            assert " ".join(example.split()) in shown, (command, example)


def sections(page):
    """What stands below each heading."""
    parts = re.split(r"^([A-Z ]+)$", page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@of_each_with_serve
def test_manual_page_says_how_it_ends_and_what_it_reads(leat, root, executable):
    page = leat(*executable, "man", check=True).stdout
    parts = sections(manual(page))
    codes = re.findall(r"kExit\w+ = (\d+);", (root / "src/tool/failure.hpp").read_text())
    assert len(codes) == 6
    for code in ["0", *codes]:
        assert re.search(rf"^ +{code} +\w", parts["EXIT STATUS"], re.M), code
    read = {"leat": {"LEAT_PASSWORD", "LEAT_TOPIC_PASSWORD"}, "lightq": {"LEAT_PASSWORD", "LEAT_ADMIN_PASSWORD"},
            "bench": set(), "serve": {"LEAT_LIGHTQ_PORT", "LEAT_LOG_LEVEL", "LEAT_STATE_DIR"}}[(executable or ["leat"])[0]]
    for variable in {"LEAT_DIR", "LEAT_DATA_DIR", "XDG_DATA_HOME", "NO_COLOR", *read}:
        assert re.search(rf"^ .*\b{variable}\b", parts["ENVIRONMENT"], re.M), variable
    for file in ("/dev/shm/leat-UID", "~/.local/share/leat", "+lock"):
        assert file in parts["FILES"]


def test_manual_pages_have_every_variable_that_is_read(leat, root):
    """Of one that only the configuration of the broker knows, the name of its flag tells it."""
    read = {name for path in [*root.glob("src/**/*.?pp"), *root.glob("include/**/*.hpp")]
            for name in re.findall(r'"(LEAT_[A-Z]+(?:_[A-Z]+)*)"', path.read_text(encoding="utf-8"))}
    assert {"LEAT_DIR", "LEAT_PASSWORD", "LEAT_ADMIN_PASSWORD"} <= read
    flags = re.findall(r"^  --([a-z-]+)", leat("serve", "--help", check=True).stdout, re.M)
    read |= {f"LEAT_{flag.upper().replace('-', '_')}" for flag in flags} - {
        f"LEAT_{word}" for word in ("VERSION", "CONFIG", "READY_FD", "CHECK")}
    pages = "".join(sections(manual(leat(*words, "man", check=True).stdout))["ENVIRONMENT"]
                    for words in ([], ["lightq"], ["serve"]))
    assert [name for name in sorted(read) if not re.search(rf"\b{name}\b", pages)] == []


def test_man_shows_it(leat, tmp_path):
    (tmp_path / "leat.1").write_text(leat("man", check=True).stdout)
    shown = subprocess.run(["man", "--warnings", "-l", tmp_path / "leat.1"], capture_output=True, text=True, check=True,
                           env={**os.environ, "MANWIDTH": "80", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"}, timeout=60)
    assert shown.stderr == "" and {"EXIT STATUS", "ENVIRONMENT", "FILES"} <= set(sections(shown.stdout))


def test_manual_page_that_cannot_be_written_is_an_error(leat):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([leat.executable, "man"], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=60)
    assert done.returncode == 6 and "standard output" in done.stderr
