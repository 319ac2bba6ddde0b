"""Dangerous commands that the hard floor does not deny: always asked about, in red, and never covered by a grant."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from errand.engine.permissions.programs.git import git_call
from errand.engine.permissions.programs.moving import DELETES
from errand.engine.permissions.shell.nested_code import SHELLS, FoundCommand, is_interpreter

_ALWAYS = frozenset(
    {"sudo", "doas", "su", "pkexec", "dd", "shred", "wipefs", "fdisk", "parted", "mkswap", "shutdown", "reboot"}
    | {"poweroff", "halt", "iptables", "crontab", "useradd", "userdel", "passwd", "mount", "umount", "diskutil"}
)
_ENDS = frozenset(("kill", "pkill", "killall"))
_FETCHERS = frozenset(("curl", "wget", "fetch", "iwr"))
_RUNS_FILES = frozenset(("-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprintf", "-fprint0", "-fls"))
_EXECUTES = frozenset(("-exec", "-execdir"))
# In `find`: what makes a name no condition, and actions that write files or ask.
_CHOOSES_OTHERS = frozenset(("-o", "-or", "!", "-not", ",", "(", "\\("))
_KEPT_ACTIONS = _RUNS_FILES - _EXECUTES - {"-delete"}
_MIN_LETTERS = 2
# Folders with these names hold no repository; others that tools fill may, such as .terraform and .venv.
_MADE_AGAIN = frozenset(
    ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", "node_modules", "*.egg-info")
)
# Names in a repository, and some like those of its commits and branches, in lower case.
_NAMES_OF_GIT = frozenset(
    {".git", "head", "orig_head", "fetch_head", "index", "config", "objects", "refs", "hooks", "logs", "info", "heads"}
    | {"tags", "remotes", "packed-refs", "pack", "x.pack", "x.idx", "x.rev", "main", "master", "0a1b2c3d"}
)
_CONFIGURES = ("-c", "--exec-path", "--config-env")
_PRINTS = frozenset(
    {"grep", "egrep", "fgrep", "ls", "cat", "head", "tail", "wc", "stat", "file", "dirname", "basename", "echo", "du"}
    | {"md5sum", "sha1sum", "sha256sum"}
)


def danger_in(commands: Sequence[FoundCommand], *, is_held: bool = False) -> str | None:
    """Return the reason for a red warning; None if there is none.

    `is_held`: a sandbox holds all that they start, and shows them no processes but their own.
    """
    for command in commands:
        if command.argv and (reason := _danger(command.program, command.argv[1:], is_held)):
            return reason
    programs = [command.program for command in commands]
    if not _FETCHERS.isdisjoint(programs) and any(_runs_input(command) for command in commands):
        return "runs a program straight from the network"
    return None


def _danger(program: str, words: tuple[str, ...], is_held: bool) -> str | None:
    if program in _ALWAYS or program.startswith(("mkfs", "newfs")):
        return f"{program} changes the system itself"
    if program == "rm" and _has(words, "rRf", "--recursive", "--force"):
        return "deletes files for good"
    is_harmless = _only_prints(words) or (is_held and _finds_by_name(words))
    if program == "find" and not _RUNS_FILES.isdisjoint(words) and not is_harmless:
        return "deletes or runs a program on what it finds"
    if program in ("chmod", "chown", "chgrp") and _has(words, "R", "--recursive"):
        return "changes the rights of many files"
    if program in _ENDS and not is_held:
        return "ends other programs"
    return _git_danger(words, is_held) if program == "git" else None


def _only_prints(words: tuple[str, ...]) -> bool:
    """Return True if `find` runs a program that prints on what it finds, and does nothing else."""
    runs = [after for word, after in pairwise(words) if word in _EXECUTES]
    return bool(runs) and _PRINTS.issuperset(runs) and not any(word in _RUNS_FILES - _EXECUTES for word in words)


def _finds_by_name(words: tuple[str, ...]) -> bool:
    """Return True if `find` runs programs on, or deletes, files with names that no file of a repository has."""
    names = [name for flag, name in pairwise(words) if flag in ("-name", "-iname")]
    unlike = all(sum(map(str.isalnum, name)) >= _MIN_LETTERS and not _is_of_git(name) for name in names)
    is_chosen = bool(names) and unlike and _CHOOSES_OTHERS.isdisjoint(words) and _KEPT_ACTIONS.isdisjoint(words)
    loses_folders = not DELETES.isdisjoint(words) and _has(words, "rR", "--recursive")
    return is_chosen and "mv" not in words and (not loses_folders or _MADE_AGAIN.issuperset(names))


def _is_of_git(pattern: str) -> bool:
    return any(fnmatchcase(name, pattern.lower()) for name in _NAMES_OF_GIT)


def _git_danger(words: tuple[str, ...], is_held: bool) -> str | None:
    call = git_call(words)
    name, rest = call.argv[0] if call.argv else "", call.argv[1:]
    if name == "push" and (
        _has(rest, "fd", "--force", "--force-with-lease", "--force-if-includes", "--delete", "--mirror", "--prune")
        or any(word.startswith(("+", ":")) for word in rest)
    ):
        return "rewrites what others have"
    if name == "reset" and "--hard" in rest:
        return "throws away uncommitted work"
    is_configured = call.unusual in _CONFIGURES
    if name == "clean" and (_has(rest, "f", "--force") or is_configured):
        return "deletes files git does not know"
    if name == "branch" and _has(rest, "DMCf", "--force"):
        return "deletes or moves a branch without asking"
    if name == "tag" and _has(rest, "df", "--delete", "--force"):
        return "deletes or moves a tag"
    if name == "stash" and rest[:1] in (("drop",), ("clear",)):
        return "throws away stashed work"
    if name in ("filter-branch", "filter-repo", "update-ref"):
        return "rewrites history"
    if (
        name == "prune"
        or (name == "gc" and (is_configured or any(word.startswith("--pru") for word in rest)))
        or (name == "reflog" and rest[:1] in (("expire",), ("delete",)))
    ):
        return "deletes commits that could still be brought back"
    return "git runs with its configuration changed" if is_configured and not is_held else None


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
