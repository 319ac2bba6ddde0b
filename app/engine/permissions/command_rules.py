"""What a person decided about commands before: rules that allow or deny a prefix of words, or one exact text.

A rule that allows never covers a shell, a wrapper, an interpreter with code, or a program alone whose subcommands do
anything.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.engine.permissions.programs.git import subcommand
from app.engine.permissions.shell.nested_code import SHELLS, WRAPPERS, FoundCommand, is_interpreter, runs_code
from app.engine.permissions.shell.scanner import program_name

# Programs that need a subcommand in a rule.
_WITH_SUBCOMMANDS = frozenset(
    {"git", "npm", "yarn", "pnpm", "bun", "deno", "pip", "pip3", "uv", "poetry", "cargo", "go", "docker", "podman"}
    | {"kubectl", "helm", "terraform", "aws", "gcloud", "az", "gh", "brew", "apt", "apt-get", "dnf", "yum", "pacman"}
    | {"systemctl", "bundle", "gem", "mvn", "gradle", "conda", "nix", "rustup", "make", "just", "task"}
)
# Subcommands that run whatever follows them.
_RUNNERS = frozenset(("exec", "x", "dlx", "eval", "foreach", "explore", "shell"))
_ALONE = frozenset(("make", "just", "task"))
_NEVER = frozenset({"eval", "source", ".", "trap", "alias", "export", "declare", "set", "read", "awk", "gawk", "mawk"})


@dataclass(frozen=True, slots=True)
class CommandRule:
    """Allows or denies commands: those that begin with the words `argv`, or the exact text `command`."""

    decision: Literal["allow", "deny"]
    argv: tuple[str, ...] = ()
    command: str | None = None


def denied_by(rules: Iterable[CommandRule], line: str, commands: Sequence[FoundCommand]) -> CommandRule | None:
    """The first deny rule for the line or for a command in it at any depth."""
    for rule in rules:
        if rule.decision != "deny":
            continue
        if rule.command is not None and rule.command == line:
            return rule
        if rule.argv and any(_begins(command.words, rule.argv) for command in commands):
            return rule
    return None


def allowed_exactly(rules: Iterable[CommandRule], line: str, commands: Sequence[FoundCommand]) -> bool:
    """True if this very text was allowed; not for texts that hand code to a shell, a wrapper or an interpreter."""
    if any(_is_never_covered(one.words) or _hands_code(one.words) for one in commands):
        return False
    return any(rule.decision == "allow" and rule.command == line for rule in rules)


def allowed_by_prefix(rules: Iterable[CommandRule], words: tuple[str, ...]) -> CommandRule | None:
    """The rule that allows a command by its first words."""
    if not words or _is_never_covered(words):
        return None
    for rule in rules:
        if rule.decision == "allow" and can_be_prefix(rule.argv) and words[: len(rule.argv)] == rule.argv:
            return rule
    return None


def can_be_prefix(argv: tuple[str, ...]) -> bool:
    """True if a person may allow everything that begins with these words."""
    if not argv or not argv[0] or _is_never_covered(argv):
        return False
    name, second = program_name(argv[0]), argv[1] if len(argv) > 1 else ""
    if name in _WITH_SUBCOMMANDS - _ALONE and (not second or second.startswith("-")):
        return False
    if second in _RUNNERS and name in _WITH_SUBCOMMANDS:
        return False
    if is_interpreter(name):
        return (second == "-m" and len(argv) > 2) or (bool(second) and not second.startswith("-"))
    return True


def _is_never_covered(words: tuple[str, ...]) -> bool:
    name = program_name(words[0]) if words else ""
    if name in SHELLS or name in WRAPPERS - {"find", "fd", "fdfind"} or name in _NEVER:
        return True
    return is_interpreter(name) and runs_code(words[1:], leading=True)


def _hands_code(words: tuple[str, ...]) -> bool:
    return bool(words) and is_interpreter(program_name(words[0])) and runs_code(words[1:])


def _begins(words: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    """True if the command begins with the prefix, whatever folder its program is in, and git's global options."""
    if not words or program_name(words[0]) != program_name(prefix[0]):
        return False
    named = (program_name(words[0]), *words[1:])
    wanted = (program_name(prefix[0]), *prefix[1:])
    return named[: len(wanted)] == wanted or subcommand(named)[: len(wanted)] == wanted
