"""Which beginning of a command a person is offered to allow: the program alone, or with its subcommand or script.

Only what is listed here is offered: programs that check, test or build the files of the workspace, and subcommands
that change nothing outside it. For the rest a person can write a rule.
"""

import os
import re

from errand.engine.permissions.command_rules import SYSTEM_FOLDERS, TARGET_PROGRAMS, can_be_prefix, inner_words
from errand.engine.permissions.shell.nested_code import is_interpreter
from errand.engine.permissions.shell.scanner import program_name

# Each with words of another call, as an example.
_ALONE = {
    "pytest": "tests/other.py -q",
    "mypy": "other.py",
    "pyright": "other.py",
    "black": "other.py",
    "isort": "other.py",
    "flake8": "other.py",
    "pylint": "other.py",
    "eslint": "other.js",
    "prettier": "--check other.js",
    "tsc": "--noEmit",
    "jest": "other.test.js",
    "vitest": "run other",
    "mocha": "other.js",
    "tox": "-e other",
    "nox": "-s other",
    "unittest": "tests.other",
    "compileall": "other",
    "ctest": "--verbose",
    "shellcheck": "other.sh",
    "rspec": "spec/other_spec.rb",
    "phpunit": "tests/Other.php",
    "rustfmt": "other.rs",
    "gofmt": "other.go",
    "clang-format": "other.c",
    "mkdir": "other",
    "touch": "other.txt",
}
_SUBCOMMANDS = {
    "git": "add commit merge cherry-pick revert mv",
    "npm": "test start",
    "pnpm": "test start",
    "yarn": "test start build lint",
    "bun": "test",
    "cargo": "test build check clippy fmt doc bench run",
    "go": "test build vet fmt",
    "ruff": "check format",
    "mvn": "test compile verify package",
    "gradle": "test build check assemble",
    "terraform": "fmt validate",
    "pre-commit": "run",
}
# Subcommands after which a third word says what is done: a script, or the other side.
_NAMED = {
    "npm": "run run-script",
    "pnpm": "run",
    "yarn": "run",
    "bun": "run",
    "deno": "task",
    "go": "mod",
    "git": "push pull fetch",
    "gh": "pr issue run repo release workflow",
}
_READS_ONLY = ("gh", frozenset(("list", "view", "status", "checks", "diff")))
_NAME = re.compile(r"\w[\w.-]*(?::\w[\w.-]*)*", re.ASCII)
# Words of another call, and what else the program does, by its beginning without the last word.
_EXAMPLES = {
    "git add": "other.txt",
    "git commit": "-m other",
    "git push": "other-branch",
    "npm run": "-- --watch",
    "cargo": "--workspace",
    "go": "./other",
    "ruff": "other.py",
}
_ELSE = {
    "git": "push",
    "git push": "other",
    "git push -u": "other",
    "git push --set-upstream": "other",
    "git pull": "other",
    "git fetch": "other",
    "npm": "publish",
    "pnpm": "publish",
    "yarn": "publish",
    "cargo": "publish",
    "go": "generate",
    "ruff": "clean",
    "gh pr": "merge",
}


def proposed_prefix(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the beginning that a person may allow, empty if none is offered."""
    length = _length(words)
    prefix = words[:length]
    return prefix if length and can_be_prefix(prefix) else ()


def other_call(prefix: tuple[str, ...]) -> str:
    """Words that may follow the beginning in another call, as text."""
    inner = inner_words(prefix)
    if len(inner) == 1:
        return _ALONE.get(program_name(inner[0]), "")
    return next((_EXAMPLES[start] for start in (" ".join(prefix[:2]), prefix[0]) if start in _EXAMPLES), "")


def other_command(prefix: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command of the same program that does not begin so; empty for a program alone."""
    if len(inner_words(prefix)) == 1:
        return ()
    if is_interpreter(program_name(prefix[0])) and len(prefix) == 2:
        return (prefix[0], "-c", "…")
    return (*prefix[:-1], _ELSE.get(" ".join(prefix[:-1]), "deploy"))


def _length(words: tuple[str, ...]) -> int:
    """Return the number of words of the prefix that is offered; 0 if none is."""
    inner = inner_words(words)
    if inner != words:
        return len(words) - len(inner) + _length(inner) if inner and _length(inner) else 0
    name = program_name(words[0]) if words else ""
    if words and words[0].startswith("/") and os.path.dirname(words[0]) not in SYSTEM_FOLDERS:
        return 1  # a script of a skill: other programs by their path are asked about in red, and never offered
    if words[:2] == ("git", "push") and words[2:3] and words[2] in ("-u", "--set-upstream"):
        return 4 if len(words) > 3 and _is_name(words[3]) and ":" not in words[3] else 0
    second, third = (words[at] if len(words) > at and _is_name(words[at]) else "" for at in (1, 2))
    if name in _ALONE:
        return 1
    if name in _SUBCOMMANDS and words[1:2] and words[1] in _SUBCOMMANDS[name].split():
        return 2
    if second in _NAMED.get(name, "").split() and third and not (name == "git" and ":" in third):
        return 3 if name != _READS_ONLY[0] or third in _READS_ONLY[1] else 0
    if name in TARGET_PROGRAMS and second and name not in _SUBCOMMANDS:
        return 2
    return 2 if is_interpreter(name) and len(words) > 1 and _is_script(words[1]) else 0


def _is_name(word: str) -> bool:
    """Return True for the name of a subcommand, a target or a remote; not for a flag, a path, an address or a
    variable.
    """
    return _NAME.fullmatch(word) is not None


def _is_script(word: str) -> bool:
    return not word.startswith("-") and word.rpartition(".")[2] in (
        "py",
        "js",
        "mjs",
        "cjs",
        "ts",
        "rb",
        "pl",
        "lua",
        "R",
    )
