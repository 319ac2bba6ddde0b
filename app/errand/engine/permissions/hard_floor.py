"""The hard floor: the few commands that are denied whatever was granted. Keep it small.

Recursive delete of a system root or the home directory, formatting or overwriting a disk, recursive change of the
rights of the root, and fork bombs. Other danger is asked about: see danger.py.
"""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

from errand.engine.permissions.shell.nested_code import (
    SHELLS,
    FoundCommand,
    FoundCommands,
    find_commands,
    is_interpreter,
)
from errand.system.regular_file import real_path

_ROOTS = frozenset(
    {"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/sbin", "/srv", "/sys"}
    | {"/usr", "/var", "/Applications", "/Library", "/System", "/Users", "/private", "/Volumes", "C:", "C:/"}
)
_DISK = re.compile(
    r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk\d|disk/|md\d|dm-\d|mapper/|loop\d|nbd\d|zram\d)[\w/:.+-]*"
)
# Possessive and anchored at the start of a name, so that hostile text is scanned once.
_FORK_BOMB = re.compile(r"(?<![\w:.])([\w:.]++)\s*+\(\s*+\)\s*+\{\s*+\1\s*+\|\s*+\1\s*+&")
_QUOTED = re.compile(r"'[^']*+'|\"(?:[^\"\\]|\\[\s\S])*+\"")
_RUN_TEXT = SHELLS | {"eval", "source", "xargs", "parallel", "env", "ssh", "tmux", "screen", "script", "su", "watch"}
# Last parts of a path that stand for everything in a folder.
_ALL = frozenset(("", ".", "*", "**", ".*", "?*", ".??*", "{,.}*", "{*,.*}"))
_USER_HOME = re.compile(r"~[\w.-]+")
_FORMATTERS = frozenset(
    ("mke2fs", "mkswap", "blkdiscard", "shred", "wipefs", "cryptsetup", "sgdisk", "sfdisk", "nvme", "truncate")
)
_FORMATTERS_BY_WORD = {
    "wipefs": re.compile(r"-[a-z]*[ao].*|--all|--offset.*"),
    "cryptsetup": re.compile(r"luksFormat|erase|luksErase|reencrypt|format"),
    "sgdisk": re.compile(r"-[a-zA-Z]*[Zzo].*|--zap.*|--clear"),
    "sfdisk": re.compile(r"/dev/.*|--delete|--wipe.*"),
    "nvme": re.compile(r"format|sanitize"),
    "parted": re.compile(r"mklabel|mktable|rm|mkpart"),
    "badblocks": re.compile(r"-[a-z]*w[a-z]*"),
    "hdparm": re.compile(r"--security-erase.*|--trim-sector.*"),
    "diskutil": re.compile(r"(?i:erase\w+|zeroDisk|randomDisk|secureErase|partitionDisk|reformat)"),
}
_COPIERS = frozenset(("cp", "mv", "install", "ddrescue"))
# Words of a `find` that do not filter, so that it matches everything below its folder.
_BARE_FIND = frozenset(
    {"-delete", "-type", "f", "d", "l", "-depth", "-xdev", "-mount", "-exec", "-execdir", "-ok", "rm", "/bin/rm", "-f"}
    | {"-r", "-R", "-rf", "-fr", "-v", "{}", "+", ";", "\\;", "--", "-L", "-P", "-H", "-print", "-not", "-mindepth"}
    | {"0", "1", "-name", "*", "-ignore_readdir_race", "unlink", "shred", "sudo"}
)
_FIND_OPTION = re.compile(r"-[HLP]|-O\d|-D")
_NAMES = frozenset(("rm", "find", "chmod", "chown", "chgrp", "dd", "tee", "parted", "badblocks", "hdparm", "diskutil"))


def is_floor_program(name: str) -> bool:
    """Return True for programs that the floor knows; behind wrappers only these are looked for."""
    return name in _NAMES or name in _FORMATTERS or name in _COPIERS or name.startswith(("mkfs", "newfs"))


def floor_reason(line: str, home: str, folder: str) -> tuple[str | None, FoundCommands]:
    """Return the reason why the line must never run, None for nearly all, and the commands that were found in it."""
    commands = find_commands(line, home, folder, is_floor_program)
    runs_code = any(command.program in _RUN_TEXT or is_interpreter(command.program) for command in commands.commands)
    text = line.replace("'", "").replace('"', "") if runs_code else _QUOTED.sub("_", line)
    if _FORK_BOMB.search(text):
        return "a fork bomb would stop this computer", commands
    roots = _roots(home)
    for command in commands.commands:
        if reason := _reason(command, home, roots):
            return reason, commands
    return None, commands


@cache
def _roots(home: str) -> frozenset[str]:
    return _ROOTS.union(*({folder, *_above(folder)} for folder in (home, real_path(home))))


def _reason(command: FoundCommand, home: str, roots: frozenset[str]) -> str | None:
    if any(">" in operator and _is_disk(target, command.folder) for operator, target in command.redirects):
        return "it would overwrite a disk"
    program, arguments = command.program, command.argv[1:]
    if not is_floor_program(program):
        return None
    if program in ("rm", "find"):
        deletes = _has_flag(arguments, "rR", "--recursive") if program == "rm" else _is_bare_find(arguments)
        if deletes and any(path in roots for path in _named_paths(arguments, home, command.folder, program)):
            return "it would delete the system or the home directory"
    elif program in ("chmod", "chown", "chgrp"):
        if _has_flag(arguments, "R", "--recursive") and "/" in _named_paths(arguments, home, command.folder, program):
            return "it would change the rights of the whole system"
    elif _overwrites(program, arguments, command.folder):
        return "it would overwrite a disk"
    return None


def _overwrites(program: str, words: tuple[str, ...], folder: str) -> bool:
    if program in _COPIERS:
        targets = [word for word in words if not word.startswith("-") or "=" in word][-1:]
        targets += [word.partition("=")[2] for word in words if word.startswith("--target-directory=")]
        return any(_is_disk(word, folder) for word in targets)
    if program == "dd":
        return any(word.startswith("of=") and _is_disk(word[3:], folder) for word in words)
    must = _FORMATTERS_BY_WORD.get(program)
    if must is not None and not any(must.fullmatch(word) for word in words):
        return False
    return any(_is_disk(word, folder) for word in words) or (program == "diskutil" and len(words) > 1)


def _is_disk(word: str, folder: str) -> bool:
    return _DISK.fullmatch(os.path.normpath(os.path.join(folder, word)) if folder else word) is not None


def _has_flag(words: tuple[str, ...], letters: str, name: str) -> bool:
    """Return True for one of the letters in a group of short flags, or for the long name or an abbreviation of it."""
    for word in words:
        if word.startswith("--"):
            if len(word) > 2 and name.startswith(word):
                return True
        elif word.startswith("-") and not set(letters).isdisjoint(word):
            return True
    return False


def _is_bare_find(words: tuple[str, ...]) -> bool:
    starts = [index + 1 for index, word in enumerate(words) if word in ("-exec", "-execdir", "-ok", "-okdir")]
    run = {word.rpartition("/")[2] for index in starts for word in words[index : index + 3]}
    acts = "-delete" in words or not run.isdisjoint(("rm", "unlink", "shred"))
    filters = [word for word in words if word.startswith("-") and not _FIND_OPTION.fullmatch(word)]
    start = words.index(filters[0]) if filters else len(words)
    rest = [word for word in words[start:] if not word.startswith(("/", "~", "."))]
    if "rm" in words and _has_flag(tuple(words[words.index("rm") :]), "rR", "--recursive"):
        rest = [word for word in rest if word != "-maxdepth"]
    return acts and all(word in _BARE_FIND for word in rest)


def _named_paths(words: tuple[str, ...], home: str, folder: str, program: str) -> Iterator[str]:
    """Yield the operands as paths: home expanded, `..` and a final glob resolved."""
    operands = [word for word in words if not word.startswith("-")]
    if program == "find" and (not operands or operands[0] in _BARE_FIND):
        operands = ["."]
    for word in operands:
        path = word
        if path == "~" or path.startswith("~/"):
            path = home + path[1:]
        elif _USER_HOME.fullmatch(path.rstrip("/*")):
            path = "/root" if path.startswith("~root") else os.path.join(os.path.dirname(home), path.rstrip("/*")[1:])
        path = _without_globs(path)
        if path.startswith("/") or path[1:2] == ":" or folder:
            path = os.path.normpath(os.path.join(folder, path)) if path[1:2] != ":" else path.rstrip("/\\") or path
            yield "/" + path.lstrip("/") if path.startswith("//") else path


def _above(path: str) -> list[str]:
    """Return the folders above the home directory: deleting one deletes the home directory too."""
    return [str(folder) for folder in PurePosixPath(path).parents if path.startswith("/")]


def _without_globs(path: str) -> str:
    parts = path.split("/")
    while len(parts) > 1 and parts[-1] in _ALL:
        parts.pop()
    if parts[-1] in _ALL:
        return "/" if path.startswith("/") else "."
    return "/".join(parts)
