"""What a person decided about commands before: rules that allow or deny a prefix of words, or one exact text.

A rule that allows never covers a shell, a wrapper, an interpreter with code, or a program alone whose subcommands do
anything.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from errand.engine.permissions.programs.git import subcommand
from errand.engine.permissions.shell.nested_code import SHELLS, WRAPPERS, FoundCommand, is_interpreter, runs_code
from errand.engine.permissions.shell.scanner import program_name
from errand.system.regular_file import real_path
from errand.text.visible_text import command_text

SYSTEM_FOLDERS = frozenset(("/bin", "/usr/bin", "/sbin", "/usr/sbin"))
# Programs that need a subcommand in a rule.
_WITH_SUBCOMMANDS = frozenset(
    {"git", "npm", "yarn", "pnpm", "bun", "deno", "pip", "pip3", "uv", "poetry", "cargo", "go", "docker", "podman"}
    | {"kubectl", "helm", "terraform", "aws", "gcloud", "az", "gh", "brew", "apt", "apt-get", "dnf", "yum", "pacman"}
    | {"systemctl", "bundle", "gem", "mvn", "gradle", "conda", "nix", "rustup", "make", "just", "task"}
)
# Subcommands that run whatever follows them.
_RUNNERS = frozenset(("exec", "x", "dlx", "eval", "foreach", "explore", "shell"))
_ALONE = frozenset(("make", "just", "task"))
_NEVER = frozenset(
    {"eval", "source", ".", "trap", "alias", "export", "declare", "set", "read", "awk", "gawk", "mawk", "nawk"}
    # Programs that run another, or have a command for it.
    | {"valgrind", "perf", "gdb", "lldb", "prlimit", "numactl", "choom", "setarch", "linux32", "linux64", "xvfb-run"}
    | {"dbus-run-session", "systemd-inhibit", "vi", "vim", "nvim", "ex", "ed", "emacs", "nano", "less", "more", "at"}
    | {"batch", "hyperfine", "cpulimit", "torsocks", "proxychains", "proxychains4", "sg", "newgrp", "unbuffer"}
)
# Programs whose `run` starts any program, or code from the network.
_RUN_ANYTHING = frozenset(("docker", "podman", "kubectl", "conda", "mamba", "rustup", "nix"))
_SCRIPT_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun"))
_RUN_SCRIPT = ("run", "run-script")
# `uv run` and the like run the program that follows.
_PROJECT_TOOLS = frozenset(("uv", "poetry", "pipenv", "hatch", "pdm", "rye"))
# Modules of Python that run code, or the program that follows.
_MODULES = frozenset(
    {"timeit", "pdb", "code", "codeop", "cProfile", "profile", "trace", "runpy", "IPython", "ipython", "idlelib"}
    | {"asyncio", "sqlite3", "ptpython", "bpython"}
)
_OPERATORS = frozenset(("&&", "||", ";", "|", "|&", "&", ">", ">>", "<", "<<", "<<<", "&>", "(", ")", "{", "}", "!"))
# Each further word is one more thing that they do.
TARGET_PROGRAMS = frozenset(("make", "gmake", "just", "task", "ninja", "gradle", "mvn", "rake", "invoke", "inv"))
_GLOB = frozenset("*?[")
# More words than this are compared as text only: looking up each path takes time.
_MAX_RESOLVED_WORDS = 2_000


@dataclass(frozen=True, slots=True)
class CommandRule:
    """Allows or denies commands: those that begin with the words `argv`, or the exact text `command`."""

    decision: Literal["allow", "deny"]
    argv: tuple[str, ...] = ()
    command: str | None = None

    @property
    def shown(self) -> str:
        """The rule's words, for people."""
        return self.command if self.command is not None else " ".join(self.argv)


def denied_by(rules: Iterable[CommandRule], line: str, commands: Sequence[FoundCommand]) -> CommandRule | None:
    """Return the first deny rule for the line or for a command in it at any depth."""
    for rule in rules:
        if rule.decision != "deny":
            continue
        if rule.command is not None and (rule.command == line or _is_one_of(rule.command, commands)):
            return rule
        if rule.argv and any(
            _begins(argv, rule.argv) for command in commands for argv in (command.argv, inner_words(command.argv))
        ):
            return rule
    return None


def _is_one_of(text: str, commands: Sequence[FoundCommand]) -> bool:
    """Return the same words, whatever their quotes and blanks."""
    try:
        argv = tuple(shlex.split(text))
    except ValueError:
        return False
    return any(command.argv == argv for command in commands)


def named_folder(commands: Iterable[FoundCommand], folders: Sequence[str], start: str, home: str) -> str | None:
    """Return the first of the folders in which a command runs, or which one of its words names, alone or after a
    flag.
    """
    for number, path in enumerate(_paths(commands, start, home)):
        named = os.path.normpath(path)
        candidates = (named, real_path(path)) if number < _MAX_RESOLVED_WORDS else (named,)
        for folder in folders:
            if any(
                path_or_real == folder or path_or_real.startswith(folder.rstrip("/") + "/")
                for path_or_real in candidates
            ):
                return folder
            if not _GLOB.isdisjoint(named) and _could_match(named, folder):
                return folder
    return None


def _could_match(pattern: str, folder: str) -> bool:
    """Return True if a file pattern may lead into the folder, part by part."""
    parts, folder_parts = pattern.split("/"), folder.split("/")
    return len(parts) >= len(folder_parts) and all(map(fnmatchcase, folder_parts, parts))


def _paths(commands: Iterable[FoundCommand], start: str, home: str) -> Iterator[str]:
    for command in commands:
        folder = command.folder or start
        yield folder
        for word in (*command.argv, *(target for _, target in command.redirects)):
            texts = {word, word.partition("=")[2], word.partition(":")[2], word[2:] if word.startswith("-") else ""}
            for text in texts - {""}:
                if "\0" not in text:
                    yield os.path.join(folder, home + text[1:] if text == "~" or text.startswith("~/") else text)


def allowed_exactly(rules: Iterable[CommandRule], line: str, commands: Sequence[FoundCommand]) -> bool:
    """Return True if this very text was allowed; not for texts that hand code to a shell, a wrapper or an
    interpreter.
    """
    is_named = any(rule.decision == "allow" and rule.command == line for rule in rules)
    return is_named and not any(_is_never_covered(command.argv) or _hands_code(command.argv) for command in commands)


def allowed_by_prefix(rules: Iterable[CommandRule], words: tuple[str, ...]) -> CommandRule | None:
    """Return the rule that allows a command by its first words."""
    for rule in rules:
        length = len(rule.argv)
        if rule.decision != "allow" or words[:length] != rule.argv or not can_be_prefix(rule.argv):
            continue
        if _is_never_covered(words):
            return None
        is_more = length > 1 and program_name(words[0]) in TARGET_PROGRAMS
        if not is_more or all(word.startswith("-") or word.isdecimal() for word in words[length:]):
            return rule
    return None


def can_be_prefix(argv: tuple[str, ...]) -> bool:
    """Return True if a person may allow everything that begins with these words."""
    if not is_one_command(argv) or _is_never_covered(argv):
        return False
    inner = inner_words(argv)
    if inner != argv:
        return bool(inner) and not inner[0].startswith("-") and can_be_prefix(inner)
    name, second = program_name(argv[0]), argv[1] if len(argv) > 1 else ""
    if name in _WITH_SUBCOMMANDS - _ALONE and (not second or second.startswith("-")):
        return False
    if second in _RUNNERS and name in _WITH_SUBCOMMANDS:
        return False
    if second == "run" and name in ("go", "deno") and (len(argv) < 3 or argv[2].startswith("-")):
        return False
    return not is_interpreter(name) or (bool(second) and not second.startswith("-"))


def inner_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that `uv run` and the like run, or the module that Python runs; other commands as they are."""
    at = 0
    while len(words) > at + 1:
        name, second = program_name(words[at]), words[at + 1]
        is_run = second == "run" and name in _PROJECT_TOOLS
        if not is_run and not (second == "-m" and name.startswith(("python", "pypy"))):
            break
        at += 2
    return words[at:]


def is_one_command(argv: tuple[str, ...]) -> bool:
    """Return True if the words can be the beginning of one command."""
    return bool(argv) and all(argv) and _OPERATORS.isdisjoint(argv) and "=" not in argv[0]


def prefix_problem(argv: tuple[str, ...]) -> str:
    """Why these words cannot be the beginning of a rule, as a sentence."""
    command = command_text(argv)
    if not is_one_command(argv):
        return f"`{command}` is not the beginning of one command: a rule has its words, without operators or variables."
    name = program_name(argv[0])
    if name in SHELLS:
        return f"`{command} …` would allow anything, because {name} is a shell. Allow the commands themselves."
    if name in WRAPPERS or name in _NEVER or name in _PROJECT_TOOLS:
        return f"`{command} …` would allow anything, because {name} runs other programs. Allow those themselves."
    if is_interpreter(name):
        return f"`{command} …` would allow any code of {name}. Name a script or a module: `{name} -m pytest`."
    return f"`{command} …` would allow all that {name} can do. Name the subcommand too."


def _is_never_covered(words: tuple[str, ...]) -> bool:
    inner = inner_words(words)
    if inner != words and inner and _is_never_covered(inner):
        return True
    name = program_name(words[0]) if words else ""
    if words[1:2] == ("run",) and name in _RUN_ANYTHING:
        return True
    if name in _PROJECT_TOOLS and words[1:2] != ("run",) and words[2:3] == ("run",):
        return True  # `uv tool run`
    if name in _SCRIPT_RUNNERS and _runs_program(words[1:]):
        return True
    if name in SHELLS or name in WRAPPERS - {"find", "fd", "fdfind"} or name in _NEVER:
        return True
    if is_interpreter(name) and words[1:2] == ("-m",) and words[2:3] and words[2].partition(".")[0] in _MODULES:
        return True
    return is_interpreter(name) and runs_code(words[1:], leading=True)


def _runs_program(words: tuple[str, ...]) -> bool:
    """Return True if the word where a script is named is a program instead, which `yarn run` and the like start too."""
    named = next((word for word in words if word not in _RUN_SCRIPT and not word.startswith("-")), "")
    return named in SHELLS or named in ("env", "npx", "bunx") or is_interpreter(named)


def _hands_code(words: tuple[str, ...]) -> bool:
    return bool(words) and is_interpreter(program_name(words[0])) and runs_code(words[1:])


def _begins(words: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    """Return True if the command begins with the prefix, whatever folder its program is in, and flags before a
    subcommand.
    """
    if not words:
        return False
    named = (program_name(words[0]), *words[1:])
    start = (program_name(prefix[0]), *prefix[1:])
    if start[0] == "git" and named[0].startswith("git-"):
        named = ("git", named[0].removeprefix("git-"), *named[1:])  # as git starts it itself
    if named[0] != start[0]:
        return False
    if named[: len(start)] == start or subcommand(named)[: len(start)] == start:
        return True
    return any(named[at : at + len(start) - 1] == start[1:] for at in _after_flags(named))


def _after_flags(words: tuple[str, ...]) -> Iterator[int]:
    """Yield the positions of a possible subcommand: after flags of the program, each with or without a value."""
    at = 1
    while at < len(words) and words[at].startswith(("-", "+")):
        at += 1
        yield at  # a flag alone
        if at < len(words) and not words[at].startswith("-") and "=" not in words[at - 1]:
            yield at + 1  # with its value
            at += at + 1 < len(words) and words[at + 1].startswith("-")
