"""Dangerous commands that the hard floor does not deny: always asked about, in red, and never covered by a grant."""

from collections.abc import Sequence
from itertools import pairwise

from errand.engine.permissions.programs.git import git_call
from errand.engine.permissions.shell.nested_code import SHELLS, FoundCommand, is_interpreter

_ALWAYS = frozenset(
    {"sudo", "doas", "su", "pkexec", "dd", "shred", "wipefs", "fdisk", "parted", "mkswap", "shutdown", "reboot"}
    | {"poweroff", "halt", "iptables", "crontab", "useradd", "userdel", "passwd", "mount", "umount", "diskutil"}
)
_ENDS = frozenset(("kill", "pkill", "killall"))
_FETCHERS = frozenset(("curl", "wget", "fetch", "iwr"))
_RUNS_FILES = frozenset(("-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprintf", "-fprint0", "-fls"))
_EXECUTES = frozenset(("-exec", "-execdir"))
_PRINTS = frozenset(
    {"grep", "egrep", "fgrep", "ls", "cat", "head", "tail", "wc", "stat", "file", "dirname", "basename", "echo", "du"}
    | {"md5sum", "sha1sum", "sha256sum"}
)


def danger_in(commands: Sequence[FoundCommand]) -> str | None:
    """Return the reason for a red warning; None if there is none."""
    for command in commands:
        if command.argv and (reason := _danger(command.program, command.argv[1:])):
            return reason
    programs = [command.program for command in commands]
    if not _FETCHERS.isdisjoint(programs) and any(_runs_input(command) for command in commands):
        return "runs a program straight from the network"
    return None


def _danger(program: str, words: tuple[str, ...]) -> str | None:
    if program in _ALWAYS or program.startswith(("mkfs", "newfs")):
        return f"{program} changes the system itself"
    if program == "rm" and _has(words, "rRf", "--recursive", "--force"):
        return "deletes files for good"
    if program == "find" and not _RUNS_FILES.isdisjoint(words) and not _only_prints(words):
        return "deletes or runs a program on what it finds"
    if program in ("chmod", "chown", "chgrp") and _has(words, "R", "--recursive"):
        return "changes the rights of many files"
    if program in _ENDS:
        return "ends other programs"
    return _git_danger(words) if program == "git" else None


def _only_prints(words: tuple[str, ...]) -> bool:
    """Return True if `find` runs a program that prints on what it finds, and does nothing else."""
    runs = [after for word, after in pairwise(words) if word in _EXECUTES]
    return bool(runs) and _PRINTS.issuperset(runs) and not any(word in _RUNS_FILES - _EXECUTES for word in words)


def _git_danger(words: tuple[str, ...]) -> str | None:
    call = git_call(words)
    name, rest = call.argv[0] if call.argv else "", call.argv[1:]
    if name == "push" and (
        _has(rest, "fd", "--force", "--force-with-lease", "--force-if-includes", "--delete", "--mirror", "--prune")
        or any(word.startswith(("+", ":")) for word in rest)
    ):
        return "rewrites what others have"
    if name == "reset" and "--hard" in rest:
        return "throws away uncommitted work"
    if name == "clean" and _has(rest, "f", "--force"):
        return "deletes files git does not know"
    if name == "branch" and _has(rest, "DM", "--force"):
        return "deletes or moves a branch without asking"
    if name == "stash" and rest[:1] in (("drop",), ("clear",)):
        return "throws away stashed work"
    if name in ("filter-branch", "filter-repo", "update-ref"):
        return "rewrites history"
    return "git runs with its configuration changed" if call.unusual in ("-c", "--exec-path", "--config-env") else None


def _has(words: tuple[str, ...], letters: str, *names: str) -> bool:
    flags = [word for word in words if word.startswith("-")]
    short = {letter for flag in flags if not flag.startswith("--") for letter in flag[1:]}
    return not short.isdisjoint(letters) or any(_is_one_of(flag.partition("=")[0], names) for flag in flags)


def _is_one_of(flag: str, names: tuple[str, ...]) -> bool:
    """Return True for one of these flags, or the beginning of a long one, which programs take for it."""
    return any(flag == name or (len(flag) > 2 and flag.startswith("--") and name.startswith(flag)) for name in names)


def _runs_input(command: FoundCommand) -> bool:
    runs = command.program in SHELLS or is_interpreter(command.program)
    return runs and not [word for word in command.argv[1:] if word != "-" and not word.startswith("-")]
