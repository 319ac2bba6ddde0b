"""What must hold for every command: hostile text around an allowed one, other quotings, and text of any kind."""

import subprocess
from pathlib import Path
from shlex import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from errand.engine.permissions.command_policy import CommandContext, CommandDecision, judge_command
from errand.engine.permissions.command_rules import CommandRule
from errand.engine.permissions.files.folder_layout import FolderLayout, closed_by_default

HOME = "/nonexistent/home/dana"
WORKSPACE = f"{HOME}/project"
LAYOUT = FolderLayout(WORKSPACE, HOME, closed_by_default(HOME), (f"{HOME}/.local/share/errand",))
CONTEXT = CommandContext(LAYOUT, WORKSPACE, is_trusted=True, trusts_git=lambda _: True)
RULES = (CommandRule("allow", ("npm", "test")), CommandRule("allow", ("git", "add")))

ALLOWED = (
    ("ls", "-la"),
    ("cat", "README.md"),
    ("grep", "-rn", "def load", "src"),
    ("git", "log", "--oneline", "-5"),
    ("find", ".", "-name", "a.py"),
    ("sed", "-n", "5,25p", "src/main.py"),
    ("npm", "test"),
    ("git", "add", "-A"),
    ("jq", "-r", ".a[]", "a.json"),
    ("awk", "-F,", "NR>1 {print NF}", "a.csv"),
    ("sed", "-n", "s/a/b/p", "a"),
    ("[", "-f", "a", "]"),
)
HOSTILE_SUFFIXES = (
    "; rm x", "\nrm x", " && touch x", " || curl evil.example", " | sh", " | tee x", " & rm x", " > x", " >> x",
    " >| x",
    " 2> x", " &> x", " $(touch x)", " `touch x`", " <(touch x)", " >(sh)", " ${x}", " $x", ' "$x"', " <<< x",
    " <<E\nE",
    " ../x", " /etc/passwd", " ~/.ssh/id_rsa", " .env", " {a,b}", " *", " ?x", " \x00", " \r", " \u200b", " \u00a0x",
    "; (ls)", "; f() { ls; }", " ; cd / ; ls", " \\\n; touch x", " '", ' "', " $'\\x41'", " ~root", " & ",
)  # fmt: skip
HOSTILE_PREFIXES = (
    "rm x; ", "rm x\n", "touch x && ", "curl evil.example | ", "A=1 ", "PATH=. ", "LD_PRELOAD=./x ", "sudo ", "env ",
    "nohup ", "timeout 5 ", "xargs ", "time ", "exec ", "command ", "eval ", "! ", "(", "{ ", "if ", "$(", "`", "./",
    "/tmp/", "> x ", "2> x ", "x() ", "alias ls=rm; ", "set -x; ", "cd /; ", "cd ..; ", "export A=1; ",
    "\u200b", "\x1b",
)  # fmt: skip
WRAPPINGS = (
    "sh -c {}", "bash -c {}", "eval {}", "echo {} | sh", "xargs -I@ sh -c {}", "su -c {}", "ssh h {}", "watch {}",
)  # fmt: skip


def judge(line: str) -> CommandDecision:
    return judge_command(line, CONTEXT, RULES)


def verdict(line: str) -> str:
    return judge(line).finding.verdict


def line_of(argv: tuple[str, ...]) -> str:
    return " ".join(map(quote, argv))


@pytest.mark.parametrize("argv", ALLOWED, ids=line_of)
def test_an_allowed_command_with_anything_hostile_around_it_is_not_allowed(argv: tuple[str, ...]) -> None:
    line = line_of(argv)
    assert verdict(line) == "allow"
    around = [f"{line}{suffix}" for suffix in HOSTILE_SUFFIXES] + [f"{prefix}{line}" for prefix in HOSTILE_PREFIXES]
    around += [wrapping.format(quote(line)) for wrapping in WRAPPINGS]
    assert [variant for variant in around if verdict(variant) == "allow"] == []


@st.composite
def quotings(draw: st.DrawFn) -> tuple[str, str]:
    """The same words, written in two ways."""
    argv = draw(st.sampled_from([*ALLOWED, ("rm", "-rf", "/"), ("cat", "../x"), ("rm", "notes"), ("cat", "/etc/x")]))
    return line_of(argv), draw(st.sampled_from([" ", "  ", "\t"])).join(draw(_quoted(word)) for word in argv)


@st.composite
def _quoted(draw: st.DrawFn, word: str) -> str:
    parts: list[str] = []
    rest = word
    while rest:
        size = draw(st.integers(1, len(rest)))
        part, rest = rest[:size], rest[size:]
        ways = [f"'{part}'", f'"{part}"', "".join(f"\\{letter}" for letter in part)]
        if part.isalnum():
            ways.append(part)
        parts.append(draw(st.sampled_from(ways)))
    return "".join(parts)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(quotings())
def test_different_quotings_of_the_same_words_decide_the_same(lines: tuple[str, str]) -> None:
    plain, quoted = (judge(line).finding for line in lines)
    # The grammar takes a few valid quotings for errors: those are asked about.
    if quoted.rule != "grammar" or plain.rule == "hard floor":
        assert plain == quoted
    else:
        assert quoted.verdict == "ask"


_WORDS = ["$(", "<<", "rm", "-rf", "/", "ls", "sudo", "sh -c", "git", "é", "-c", "\\\n", "&&", "EOF", "if", "for", "in"]
_MORE = ["do", "done", "cat", "../", "/etc/", ">&", "2>", "eval", "\ud800", " "]
PIECES = st.sampled_from([*"'\"\\`$(){}[];&|<>!#~*?=-/ \n\t\x00\u200b", *_WORDS, *_MORE])


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=200))
def test_any_text_gets_a_decision(line: str) -> None:
    assert verdict(line) in ("allow", "ask", "deny")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=20).map("".join))
def test_a_destructive_command_at_the_end_of_a_line_is_denied(before: str) -> None:
    """Whatever stands in a line before it, as long as nothing there is still open."""
    if all(mark not in before for mark in "'\"\\`$(){}#<>\x00") and "do" not in before:
        assert verdict(f"{before}\nrm -rf /") == "deny"


_PARTS = ["ls", "cat", "wc", "a", "src", "-l", "--", "'x y'", '"q"', "a'b'c", "\\ ", "é", "1", "2>&1", ">&2", "&&", "|"]
_ODD = ["||", ";", "2>/dev/null", "<a", "~", "!", "=", "x=1", "#", "{", "}", "]", "^", "time", ">/dev/null", " # c"]
_RISKY = ["'", '"', "\\", "$", "`", "(", ")", "<", ">", "*", "?", "[", "<<E", "{a,b}", "~/x", "|&", "$'a'", "@", "%"]
_DOLLARS = ['"x$"', '"a$|b"', '"$"src', '"$)"', '"\\$a$"', "$?", '"$?"', "a$", '"$src"']
_BLANK = ["\\'", "\n", "\\\n"]
LINES = st.lists(st.sampled_from([*_PARTS, *_ODD, *_RISKY, *_BLANK, *_DOLLARS]), max_size=8)


FILES = ("a.txt", "b.txt", "x y.txt", "-l", ".hidden.txt", "data1.csv", "data2.csv", "[1].csv", "*.txt")
DEEP = ("src/ü.csv", "src/a.ts", "src/.b.ts", "src/c*.ts", "src/server.key")
_PATTERNS = [
    "*.txt",
    "a*",
    "?.txt",
    "data[12].csv",
    "[0-9].csv",
    "data[0-9].csv",
    "src/*.ts",
    "./*.txt",
    "*/a.ts",
    "src/*",
]
_ODD_PATTERNS = [
    "s*c/*.ts",
    "**/*.ts",
    "*",
    "-*",
    ".h*",
    "[a-z].txt",
    "[!a].txt",
    "no*",
    "src/../*.txt",
    "'*'.txt",
    "\\*.txt",
]
_VALUES = ["a.txt", "src", "'x y.txt'", "none", "-l", "ü.txt", '"*.txt"']
_BODIES = [
    'cat "$f"',
    "cat $f",
    "wc -l ${f}",
    'ls "src/$f"',
    "ls -- $f",
    'echo "$f"; cat "$f" | wc -l',
    "cat '$f'",
    "cat \\$f",
]
_OTHER_BODIES = [
    'cat "$g"',
    'cat "$f$f"',
    "cat $f*",
    'cat "$f" *.ts',
    "cd $f && ls",
    'cat "${f%x}"',
    "$f",
    "cat <$f",
    "ls >$f",
]


@st.composite
def loops(draw: st.DrawFn) -> str:
    values = " ".join(draw(st.lists(st.sampled_from([*_PATTERNS, *_ODD_PATTERNS, *_VALUES]), max_size=3)))
    body, between = draw(st.sampled_from([*_BODIES, *_OTHER_BODIES])), draw(st.sampled_from(["; ", "\n", ";\n", " "]))
    end = draw(st.sampled_from(["", " | wc -l", " 2>/dev/null", " && ls *.csv", "; ls $f", " > x"]))
    return f"for f in {values}{between}do {body}{between}done{end}"


@pytest.fixture(scope="module")
def recorded_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `bin/ls`, `bin/cat` and `bin/wc`, which append their words to `log`."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "bin").mkdir()
    (folder / "work" / "src").mkdir(parents=True)
    for name in (*FILES, *DEEP):
        (folder / "work" / name).touch()
    (folder / "work" / "away").symlink_to("/etc/hostname")
    for name in ("ls", "cat", "wc"):
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\nexec /usr/bin/printf '%s\\0' {name} \"$@\" '\x01' >> {folder}/log\n")
        program.chmod(0o755)
    return folder


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LINES, st.sampled_from(["ls ", "cat a ", "wc -l "]))
def test_bash_runs_the_words_that_were_judged(recorded_programs: Path, parts: list[str], first: str) -> None:
    _check_runs(recorded_programs, first + " ".join(parts))


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    loops()
    | st.lists(st.sampled_from([*_PATTERNS, *_ODD_PATTERNS]), min_size=1, max_size=3).map(
        lambda patterns: f"ls {' '.join(patterns)}"
    )
)
@example('for f in *.txt; do cat "$f" | wc -l; done | wc -l')
@example("cd src && ls *.ts")
def test_bash_finds_the_files_that_were_judged(recorded_programs: Path, line: str) -> None:
    _check_runs(recorded_programs, line)


def _check_runs(recorded_programs: Path, line: str) -> None:
    """Check that bash starts only the programs that were judged, with the same arguments, if the line is allowed."""
    work, log = recorded_programs / "work", recorded_programs / "log"
    context = CommandContext(FolderLayout(str(work), HOME, closed_by_default(HOME)), str(work))
    decided = judge_command(line, context)
    if decided.finding.verdict != "allow":
        return
    log.write_bytes(b"")
    environment = {"PATH": str(recorded_programs / "bin"), "HOME": HOME}
    command = ["/bin/bash", "--noprofile", "--norc", "-c", line]
    subprocess.run(command, cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    started = [tuple(run.decode().split("\0")) for run in log.read_bytes().split(b"\0\1\0") if run]
    assert [run for run in started if run not in decided.runs] == []
    assert sorted(entry.name for entry in work.iterdir()) == sorted([*FILES, "src", "away"])
