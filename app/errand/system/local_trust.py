"""Mutual authentication of two processes of one user on a machine shared with other users.

Both can read a private file, and prove to each other that they know the token in it. The token itself is never sent:
any process can take the port of a program that has ended.
"""

import hmac
import os
import secrets
import stat
import sys
from pathlib import Path
from typing import Literal

from errand.system.regular_file import open_regular

_LISTENING = "0A"  # the listening state in /proc/net/tcp; listening sockets come first
_ENDED_STATES = (b"Z", b"X")  # a zombie or a dead process in /proc/PID/stat
_MAX_FILE_BYTES = 65_536


class NotPrivate(OSError):
    """Other users may change or read the file, or it belongs to another user. `strerror` says which."""


def new_nonce() -> str:
    return secrets.token_hex(16)


def proof(token: str, side: Literal["asks", "answers"], asking: str, answering: str) -> str:
    """HMAC-SHA256 in hex over both nonces, keyed with the token; differs for the two sides."""
    return hmac.digest(token.encode(), f"{side}\n{asking}\n{answering}".encode(), "sha256").hex()


def is_valid_proof(given: str, token: str, side: Literal["asks", "answers"], asking: str, answering: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), proof(token, side, asking, answering).encode())


def read_private(file: Path) -> bytes:
    """Read a file of this user that nobody else may read, in a folder that nobody else may write to.

    Raises `NotPrivate` for any other file, OSError if it cannot be read.
    """
    with open_regular(file, follow_links=False) as stream:
        if os.name == "posix":
            _check(os.stat(file.parent), file.parent, stat.S_IWGRP | stat.S_IWOTH)
            _check(os.fstat(stream.fileno()), file, stat.S_IRWXG | stat.S_IRWXO)
        return stream.read(_MAX_FILE_BYTES)


def own_user() -> int:
    """Return the effective user id; 0 on systems without numeric user ids."""
    return os.geteuid() if os.name == "posix" else 0


def process_start(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot; with the pid it identifies the process.

    None if there is no such process, also if it has ended and only its parent has not noticed yet, or the system does
    not provide the time.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return None if fields[0] in _ENDED_STATES else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def is_same_process(pid: int, start: int | None) -> bool:
    """Return whether the process that runs as `pid` is the one that began at `start`.

    A process without a known start is the same only where the system provides no start times at all.
    """
    if start is None:
        return process_start(os.getpid()) is None
    return process_start(pid) == start


def listener_user(port: int) -> int | None:
    """Return the user id of the process that listens on a loopback port; None if the system does not provide it."""
    if sys.platform != "linux":
        return None
    address = f"0100007F:{port:04X}"
    try:
        with open("/proc/net/tcp", encoding="ascii") as lines:
            next(lines)
            for line in lines:
                fields = line.split()
                if fields[3] != _LISTENING:
                    return None
                if fields[1] == address:
                    return int(fields[7])
    except (OSError, ValueError, IndexError):
        pass
    return None


def _check(found: os.stat_result, path: Path, not_for_others: int) -> None:
    if found.st_uid != own_user():
        raise NotPrivate(0, f"{path} belongs to another user", str(path))
    if found.st_mode & not_for_others:
        raise NotPrivate(
            0, f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):o}): `chmod go-rwx {path}`", str(path)
        )
