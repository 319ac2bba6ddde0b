"""Restricts the files and TCP ports of a thread, and of what it starts, through Landlock. Linux only.

The weaker form of the sandbox: it hides neither names nor processes, and does not limit UDP.
https://docs.kernel.org/userspace-api/landlock.html
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from errand.engine.sandbox import seccomp

# Numbers of system calls, the same on all processors.
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24
_CAPABILITY_VERSION_3, _MAX_CAPABILITIES = 0x2008_0522, 64

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_FIRST_VERSION = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV, _RESOLVE_UNIX = 1 << 13, 1 << 14, 1 << 15, 1 << 16
# Since then sockets with a path are reached in writable folders alone; before, no Unix socket may be made.
_UNIX_SOCKETS_SINCE = 9
# The version of Landlock that has each right.
_LATER = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV), (_UNIX_SOCKETS_SINCE, _RESOLVE_UNIX))
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV | _RESOLVE_UNIX
_READS = _EXECUTE | _READ_FILE | _READ_DIR

NETWORK_SINCE = 4
_TCP = 3  # bind and connect
_SCOPES_SINCE = 6
_SCOPES = 3  # abstract unix sockets and signals

# Devices that programs need to write.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts")


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def version() -> int:
    """Return the kernel's version of Landlock, 0 if there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _libc().syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION))


def ruleset(writable: Iterable[Path], readable: Iterable[Path], hidden: Iterable[Path], *, network: bool) -> int:
    """Return a descriptor of what `enter` restricts to. Looks at many folders, for milliseconds. Raises OSError.

    Whatever is not `hidden` can be read, and lists can be read everywhere; `readable` and `writable` win over `hidden`.
    """
    has = version()
    handled = _FIRST_VERSION | sum(right for since, right in _LATER if has >= since)
    net = _TCP if has >= NETWORK_SINCE and not network else 0
    scoped = _SCOPES if has >= _SCOPES_SINCE else 0
    size = 24 if has >= _SCOPES_SINCE else 16 if has >= NETWORK_SINCE else 8
    rules = _Ruleset(handled, net, scoped)
    descriptor = _checked(_libc().syscall(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), 0))
    try:
        _allow(descriptor, "/", _READ_DIR)
        for path in (*_all_but(frozenset(map(str, hidden))), *map(str, readable)):
            _allow(descriptor, path, _READS & handled)
        for path in (*map(str, writable), *_DEVICES):
            _allow(descriptor, path, handled)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def enter(descriptor: int) -> None:
    """Restrict the calling thread for good, and all that it starts. Call it in a thread of its own. Raises OSError."""
    _drop_capabilities()
    _checked(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(_libc().syscall(_RESTRICT, descriptor, 0))
    if seccomp.is_supported():
        seccomp.enter(unix_sockets=version() >= _UNIX_SOCKETS_SINCE)


def _drop_capabilities() -> None:
    """Drop the capabilities of root: with them a process reads memory and environment of others past Landlock."""
    for capability in range(_MAX_CAPABILITIES):
        _libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for one that the kernel or the user lacks
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    _checked(_libc().capset(header, none))


def _all_but(hidden: frozenset[str]) -> list[str]:
    """Return the paths to allow so that `hidden` stays closed: the entries of all folders above, without links."""
    above = {str(parent) for path in hidden for parent in Path(path).parents}
    paths: list[str] = []
    for folder in above:
        with suppress(OSError), os.scandir(folder) as entries:
            paths += [
                entry.path
                for entry in entries
                if entry.path not in hidden and entry.path not in above and not entry.is_symlink()
            ]
    return paths


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is gone, or closed to us anyway
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        rule = _PathBeneath(rights, descriptor)
        _checked(_libc().syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
