"""Detects commands that are always denied, and high-risk ones."""

import os
import re
from pathlib import Path

from app.engine.permissions.shell_parser import SimpleCommand, TooComplex, simple_commands

_SYSTEM_ROOTS = frozenset(
    {"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/sbin", "/srv"}
    | {"/sys", "/usr", "/var", "/Applications", "/Library", "/System", "/Users", "C:", "C:/"}
)
_BLOCK_DEVICE = re.compile(r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk\d|md\d|dm-\d|mapper/|loop\d)")
_REDIRECT_TO_DEVICE = re.compile(r">[>|]?\s{0,20}['\"]?" + _BLOCK_DEVICE.pattern)
# Possessive and anchored at the start of a name, so that hostile text is scanned once.
_FORK_BOMB = re.compile(r"(?<![\w:.])([\w:.]++)\s*+\(\s*+\)\s*+\{\s*+\1\s*+\|\s*+\1\s*+&")
# A line without one of these cannot match a hard block: a fast check, since parsing a long line is expensive.
_BLOCK_WORDS = re.compile(r"rm|find|ch(?:mod|own|grp)|/dev/")
_LONGEST = 8_000
_DEVICE_WRITERS = frozenset(("dd", "shred", "wipefs", "blkdiscard", "tee", "cp", "mkswap", "badblocks"))
# Words of a `find` that do not filter, so that it matches everything below its folder.
_BARE_FIND = frozenset(
    {"-delete", "-type", "f", "d", "-depth", "-xdev", "-mount", "-exec", "rm", "-f", "-r", "-rf", "{}", "+", ";", "\\;"}
)
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "python", "python3", "perl", "ruby", "node"))
_ALWAYS_HIGH = frozenset(
    {"sudo", "doas", "su", "dd", "shred", "wipefs", "fdisk", "parted", "mkswap", "shutdown", "reboot", "poweroff"}
    | {"halt", "iptables", "crontab", "useradd", "userdel", "passwd", "mount", "umount"}
)


def hard_block(line: str, home: Path) -> str | None:
    """The reason why the command must never run, whatever was allowed; None for nearly all. Raises `TooComplex`."""
    if _FORK_BOMB.search(line):
        return "a fork bomb would stop this computer"
    if _REDIRECT_TO_DEVICE.search(line):
        return "it would overwrite a disk"
    if not _BLOCK_WORDS.search(re.sub(r"['\"\\\n]", "", line)):
        return None
    folder = ""
    for command in simple_commands(line):
        reason = _block_reason(command, home, folder)
        if reason:
            return reason
        if command.program == "cd":
            folder = _plain(command.operands[0] if command.operands else "~", home, folder)
    return None


def high_risk(line: str) -> str | None:
    """The reason for a warning to the person; None if there is none."""
    if len(line) > _LONGEST:
        return "too long to be judged"
    try:
        commands = simple_commands(line)
    except TooComplex:
        return "too deeply nested to be judged"
    for command in commands:
        reason = _risk_of(command)
        if reason:
            return reason
    programs = [command.program for command in commands]
    if any(program in ("curl", "wget") for program in programs) and _runs_input(commands):
        return "runs a program straight from the network"
    return None


def _block_reason(command: SimpleCommand, home: Path, folder: str) -> str | None:
    deletes = command.program == "rm" and command.has_flag("rR", "--recursive")
    deletes = deletes or (command.program == "find" and _is_bare_find(command))
    if deletes and _hits_root(command, home, folder):
        return "it would delete the system or the home directory"
    if command.program in ("chmod", "chown", "chgrp") and command.has_flag("R", "--recursive"):
        roots = (_plain(word, home, folder) for word in command.operands[1:])
        return (
            "it would change the rights of the whole system" if any(root in _SYSTEM_ROOTS for root in roots) else None
        )
    writes = command.program in _DEVICE_WRITERS or command.program.startswith("mkfs")
    if writes and any(_BLOCK_DEVICE.search(word) and not word.startswith("if=") for word in command.words):
        return "it would overwrite a disk"
    return None


def _is_bare_find(command: SimpleCommand) -> bool:
    acts = "-delete" in command.words or "rm" in command.words
    return acts and all(word in _BARE_FIND for word in command.words[1:])


def _hits_root(command: SimpleCommand, home: Path, folder: str) -> bool:
    roots = _SYSTEM_ROOTS | {str(home), os.path.realpath(home)}
    return any(_plain(word, home, folder) in roots for word in command.operands)


def _plain(word: str, home: Path, folder: str) -> str:
    """An operand as a path: home directory expanded, `..` and a final `/*` resolved, relative to `folder`."""
    path = re.sub(r"^(~|\$HOME|\$\{HOME\})(?=/|$)", str(home), word)
    path = re.sub(r"/(?:\.?\*|\{,\.\}\*)$", "/", re.sub("/+", "/", path))
    if not path.startswith("/"):
        if not folder:
            return path
        path = f"{folder}/{'' if path in ('*', '.*') else path}"
    return re.sub("/+", "/", os.path.normpath(path))


def _risk_of(command: SimpleCommand) -> str | None:
    program, operands = command.program, command.operands
    if program in _ALWAYS_HIGH or program.startswith("mkfs"):
        return f"{program} changes the system itself"
    if program == "rm" and command.has_flag("rRf", "--recursive", "--force"):
        return "deletes without asking"
    if program == "find" and ("-delete" in command.words or "-exec" in command.words):
        return "deletes or runs a program on what it finds"
    if program in ("chmod", "chown") and command.has_flag("R", "--recursive"):
        return "changes the rights of many files"
    if program in ("kill", "pkill", "killall"):
        return "ends other programs"
    return _git_risk(command) if program == "git" and operands else None


def _git_risk(command: SimpleCommand) -> str | None:
    operands = command.operands
    if "push" in operands and (
        command.has_flag("f", "--force", "--force-with-lease", "--delete", "--mirror")
        or any(word.startswith(("+", ":")) for word in operands)
    ):
        return "rewrites what others have"
    if "reset" in operands and "--hard" in command.flags:
        return "throws away uncommitted work"
    if "clean" in operands and command.has_flag("f", "--force"):
        return "deletes files git does not know"
    return None


def _runs_input(commands: tuple[SimpleCommand, ...]) -> bool:
    return any(command.program in _SHELLS and not set(command.operands) - {"-"} for command in commands)
