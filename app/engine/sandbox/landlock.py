"""Restricts the files and TCP ports of a thread, and of what it starts, through Landlock. Linux only.

The weaker form of the sandbox: it hides no names and no processes, and does not limit UDP.
https://docs.kernel.org/userspace-api/landlock.html
"""

import ctypes
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

# The same on all processors.
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_FIRST_VERSION = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
# The version of Landlock that has each right.
_LATER = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV))
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READS = _EXECUTE | _READ_FILE | _READ_DIR

NETWORK_SINCE = 4
_TCP = 3  # bind and connect
_SCOPES_SINCE = 6
_SCOPES = 3  # abstract unix sockets and signals

# What programs need to write that is no file of anybody.
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
    """The kernel's version of Landlock, 0 if there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _libc().syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION))


def restrict(writable: Iterable[Path], readable: Iterable[Path], hidden: Iterable[Path], *, network: bool) -> None:
    """Restrict the calling thread for good, and all that it starts. Call it in a thread of its own. Raises OSError.

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
        _allow(descriptor, Path("/"), _READ_DIR)
        for path in _all_but(tuple(hidden)):
            _allow(descriptor, path, _READS & handled)
        for path in readable:
            _allow(descriptor, path, _READS & handled)
        for path in (*writable, *map(Path, _DEVICES)):
            _allow(descriptor, path, handled)
        _checked(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(_libc().syscall(_RESTRICT, descriptor, 0))
    finally:
        os.close(descriptor)


def _all_but(hidden: tuple[Path, ...], folder: Path = Path("/")) -> Iterable[Path]:
    """What to allow so that nothing of `hidden` is: the entries of all folders above them, which have no links."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            if entry.is_symlink() or path in hidden:
                continue
            if any(one.is_relative_to(path) for one in hidden):
                yield from _all_but(hidden, path)
            else:
                yield path


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is gone, or closed to us anyway
    try:
        if not path.is_dir():
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
