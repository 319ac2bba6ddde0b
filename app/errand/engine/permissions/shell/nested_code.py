"""Finds every command that a line would run at any depth: behind wrappers, in `sh -c`, `eval`, pipes into a shell.

Tolerant like the scanner, and linear. What is too deep is read as one flat list of words, so that a cap on the
analysis loses no command.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from errand.engine.permissions.shell.scanner import ScannedCommand, program_name, scan

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "csh", "tcsh", "pwsh", "powershell", "cmd"))
# Programs that run the command that follows among their words.
WRAPPERS = frozenset(
    {
        "sudo",
        "doas",
        "pkexec",
        "su",
        "runuser",
        "env",
        "nohup",
        "nice",
        "ionice",
        "setsid",
        "exec",
        "command",
        "builtin",
    }
    | {"xargs", "parallel", "timeout", "stdbuf", "time", "busybox", "toybox", "chroot", "unshare", "nsenter", "watch"}
    | {"flock", "strace", "ltrace", "systemd-run", "gosu", "setpriv", "caffeinate", "chrt", "taskset", "firejail"}
    | {"fakeroot", "unbuffer", "rlwrap", "script", "ssh", "tmux", "screen", "find", "fd", "fdfind", "coproc", "proot"}
    | {"entr", "npx", "bunx", "pipx", "uvx", "start", "osascript"}
)
# Programs that run a word of theirs as code.
_CODE_WORDS = frozenset(
    {"eval", "trap", "alias", "watch", "parallel", "su", "runuser", "script", "tmux", "screen", "ssh", "env", "flock"}
    | {"xargs", "osascript", "coproc"}
)
_RUNS_OTHERS = WRAPPERS | SHELLS | {"eval"}
INTERPRETERS = frozenset(
    {"python", "python2", "python3", "pypy", "pypy3", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua"}
    | {"luajit", "tclsh", "expect", "awk", "gawk", "mawk", "nawk", "Rscript", "swift", "groovy", "julia", "guile"}
    | {"tsx", "ts-node", "babel-node", "ipython", "ipython3", "irb", "jshell", "octave", "bpython", "ptpython"}
)
_VERSIONED = re.compile(r"(python|pypy|perl|ruby|php|lua|node)[\d.]+")
_CODE_FLAG = re.compile(r"-[A-Za-z]*[ceErC]|--(?:command|eval|execute|run|print)|/[cCkK]|-[cC]ommand")
_RUNS_TEXT = re.compile(
    r"(?<!\w)(?:system|popen\w*+|exec\w*+|spawn\w*+|run|call|check_\w++|shell_exec|passthru|getoutput|qx)[\s(\[{]{0,9}[\"']"
    r"([^\"']{1,4000})[\"']"
)
_CODE_NAME = re.compile(r"[\w.@-]{0,80}[=!]{1,2}!?")
_NO_FILTERS = frozenset(("-print", "-print0", "-type", "f", "d", "-depth", "-xdev", "-mindepth", "1"))
_GIT_ALIAS = re.compile(r"[\w.-]{1,80}=!")
_CRUDE = re.compile(r"[\s;&|()<>`'\"\\{}]++")
_FOLDER_FLAGS = frozenset(("-C", "-D", "--chdir", "--wd", "--working-directory"))
_CHARACTERS = 400_000
_MAX_DEPTH = 16
_MAX_WRAPPERS = 64
# Longer code is judged without following `cd`, which costs as much as the path is long.
_MAX_TRACKED_LENGTH = 8_192
# Linux limits an argument to this length (MAX_ARG_STRLEN), and bash receives the line as one.
MAX_LINE_LENGTH = 131_072


@dataclass(frozen=True, slots=True)
class FoundCommand:
    """A command at any depth, its program first. `folder` is where it runs, empty if unknown."""

    argv: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...]
    folder: str
    depth: int = 0

    @property
    def program(self) -> str:
        return program_name(self.argv[0]) if self.argv else ""


@dataclass(frozen=True, slots=True)
class FoundCommands:
    """All commands of a line. Incomplete if the line is too long or too deep to be read fully."""

    commands: tuple[FoundCommand, ...]
    is_complete: bool


def find_commands(line: str, home: str, folder: str, wanted: Callable[[str], bool]) -> FoundCommands:
    """Return every command of the line.

    Behind a wrapper only `wanted` programs are found, each where it stands first.
    """
    return _Finder(home, wanted).find(line, folder)


class _Finder:
    def __init__(self, home: str, wanted: Callable[[str], bool]) -> None:
        self._home = home
        self._wanted = wanted
        self._left = _CHARACTERS
        self._is_complete = True
        self._nested: list[tuple[str, str, int]] = []
        self._variables = {"HOME": home, "IFS": " ", "USERPROFILE": home}

    def find(self, line: str, folder: str) -> FoundCommands:
        self._is_complete = len(line) <= MAX_LINE_LENGTH
        commands: list[FoundCommand] = []
        self._nested = [(line, folder, 0)]
        while self._nested:
            code, folder, depth = self._nested.pop()
            self._left -= len(code)
            if depth > _MAX_DEPTH or self._left < 0:
                self._is_complete = False
                commands += self._crude(code, folder, depth) if self._left > -_CHARACTERS else ()
            else:
                commands += self._of_code(code, folder, depth)
        return FoundCommands(tuple(commands), self._is_complete)

    def _of_code(self, code: str, folder: str, depth: int) -> Iterator[FoundCommand]:
        if len(code) > _MAX_TRACKED_LENGTH:
            folder = ""
        for command in scan(code, self._variables):
            for argv in self._unwrapped(command):
                before = command.argv[: max(0, len(command.argv) - len(argv))]
                start_folder = _changed_folder(before, folder, self._home)
                found_command = FoundCommand(tuple(argv), tuple(command.redirects), start_folder, depth)
                yield found_command
                self._nested += (
                    (text, start_folder, depth + 1) for text in _code_of(found_command, command) if text.strip()
                )
            if command.program in ("cd", "pushd") and len(code) <= _MAX_TRACKED_LENGTH:
                operands = [word for word in command.argv[1:] if not word.startswith("-")]
                folder = _joined(folder, operands[0] if operands else "~", self._home)

    def _unwrapped(self, command: ScannedCommand) -> Iterator[list[str]]:
        """Yield the command, and behind a wrapper every wanted program, where it stands first."""
        argv = command.argv
        yield argv
        if command.program not in WRAPPERS and command.program != "eval":
            return
        if command.program in ("xargs", "parallel"):
            argv = argv + _input_of(command).replace("\\0", " ").split()
        if sum(program_name(word) in _RUNS_OTHERS for word in argv) > _MAX_WRAPPERS:
            self._is_complete = False
        yield from self._wanted_in(argv, 1)

    def _wanted_in(self, words: list[str], start: int) -> Iterator[list[str]]:
        seen: set[str] = set()
        for at in range(start, len(words)):
            name = program_name(words[at])
            if name not in seen and (self._wanted(name) or name in SHELLS or name == "eval" or is_interpreter(name)):
                seen.add(name)
                yield words[at:]

    def _crude(self, code: str, folder: str, depth: int) -> Iterator[FoundCommand]:
        tokens = [word for word in _CRUDE.split(code) if word]
        for argv in self._wanted_in(tokens, 0):
            yield FoundCommand(tuple(argv), (), folder, depth)


def is_interpreter(name: str) -> bool:
    return name in INTERPRETERS or _VERSIONED.fullmatch(name) is not None


def runs_code(words: Iterable[str], *, leading: bool = False) -> bool:
    """Return True if a shell or interpreter gets its code as a word; `leading` looks only at flags before its
    script.
    """
    for word in words:
        if leading and (not word.startswith("-") or word == "-m"):
            return False
        if _CODE_FLAG.fullmatch(word):
            return True
    return False


def _code_of(one: FoundCommand, command: ScannedCommand) -> Iterator[str]:
    """Yield the texts that this command would run as shell code."""
    program, arguments = one.program, one.argv[1:]
    if program == "eval":
        rest = iter(arguments)
        yield " ".join([word for word in rest if word != "eval"])
    elif program in SHELLS:
        flagged = [index for index, word in enumerate(arguments) if _CODE_FLAG.fullmatch(word)]
        if flagged:
            # cmd and PowerShell join the words that follow.
            yield arguments[flagged[0] + 1] if len(arguments) > flagged[0] + 1 else ""
            yield " ".join(arguments[flagged[0] + 1 :])
        yield _input_of(command)
    elif is_interpreter(program):
        for flag, text in pairwise(arguments):
            if _CODE_FLAG.fullmatch(flag) or program.endswith("awk"):
                yield from _RUNS_TEXT.findall(text)
        if program.endswith("awk") and arguments:
            yield from _RUNS_TEXT.findall(arguments[0])
    if program in _CODE_WORDS:
        texts = (word.removeprefix("-S") if program == "env" else word for word in arguments)
        yield from (_CODE_NAME.sub("", text, count=1) for text in texts if " " in text or "=" in text)
    elif program == "git":
        yield from (word.partition("!")[2] for word in arguments if _GIT_ALIAS.match(word))
        yield from (f"git {word.partition('=')[2]}" for word in arguments if word.startswith("alias.") and "=" in word)
        if "foreach" in arguments:
            yield arguments[-1]
            yield " ".join(arguments[arguments.index("foreach") + 1 :])
    if program in ("at", "batch"):
        yield _input_of(command)


def _input_of(command: ScannedCommand) -> str:
    if command.text_in or command.source is None:
        return command.text_in
    return _text_of(command.source)


def _text_of(source: ScannedCommand) -> str:
    """Return what a command writes, as far as its words say it."""
    if source.program in ("echo", "printf"):
        arguments = source.argv[1:]
        return " ".join(word for word in arguments if word not in ("-n", "-e", "-en", "-ne")).replace("\\n", "\n")
    if source.program == "find":  # its folders, unless it filters what it finds
        start = next((at for at, word in enumerate(source.argv) if at and word.startswith("-")), len(source.argv))
        return "" if set(source.argv[start:]) - _NO_FILTERS else " ".join(source.argv[1:start])
    return source.text_in if source.program in ("cat", "tee", "") else ""


def _changed_folder(words: Sequence[str], folder: str, home: str) -> str:
    """Return the folder to which a wrapper moves with `env -C /` or `sudo --chdir=/`."""
    for at, word in enumerate(words):
        name, is_attached, value = word.partition("=")
        if name in _FOLDER_FLAGS:
            folder = _joined(folder, value if is_attached else "".join(words[at + 1 : at + 2]), home)
        elif word[:2] in ("-C", "-D") and len(word) > 2:
            folder = _joined(folder, word[2:], home)
    return folder


def _joined(folder: str, path: str, home: str) -> str:
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.normpath(os.path.join(folder, path)) if folder or path.startswith("/") else ""
