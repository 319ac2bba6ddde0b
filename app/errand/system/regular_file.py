"""Reads and replaces regular files at untrusted paths; writes are atomic, unless that would break what a file is."""

import errno
import os
import re
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from errand.system.paths import Paths

_TO_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}
_UNFINISHED = re.compile(r"\.errand-[0-9a-f]{16}\.tmp")
# What the kernel removes from a file whose content changes.
_ATTRIBUTES_OF_CONTENT = frozenset(("security.capability", "security.ima", "security.evm"))
# More is a clock that was wrong.
_MAX_AHEAD_S = 60
_SYSTEM_FOLDERS = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/System")


def real_path(path: str | os.PathLike[str]) -> str:
    """Return `os.path.realpath` without a question about each component: Linux knows where an open file is."""
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC) if sys.platform == "linux" else None
    except (OSError, ValueError):
        file = None
    if file is not None:
        try:
            resolved = os.readlink(f"/proc/self/fd/{file}")
        except OSError:  # without /proc
            resolved = ""
        finally:
            os.close(file)
        # Not the file of a socket or a pipe, nor one whose name was removed meanwhile, to which the kernel adds a word.
        if resolved.startswith("/") and not resolved.endswith(" (deleted)"):
            return resolved
    try:
        return os.path.realpath(path)
    except OSError as error:  # a link that may not be read, as those of other processes in /proc
        return error.filename if isinstance(error.filename, str) else os.path.abspath(path)


class NotRegularFile(OSError):
    """A folder, a pipe, a device, a socket, or a link where links are not followed."""


class FileTooLarge(OSError):
    """The file has more bytes than the allowed maximum."""


def open_regular(path: Path, *, follow_links: bool = True, folder: int | None = None) -> BinaryIO:
    """Open a file to read its bytes. Raises `NotRegularFile` for anything else, other OSErrors as the system does.

    A relative path starts at `folder`, if that is a descriptor.
    """
    try:
        # Check before opening as well: opening some devices has side effects.
        _check(os.stat(path, dir_fd=folder, follow_symlinks=follow_links), path)
        descriptor = os.open(path, _TO_READ if follow_links else _TO_READ | _NO_LINK, dir_fd=folder)
    except ValueError as error:  # a NUL, or characters not allowed in a file name
        raise OSError(errno.EINVAL, "this is no name of a file", repr(path)) from error
    try:
        _check(os.fstat(descriptor), path)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most: int, *, follow_links: bool = True) -> bytes:
    """Read a whole file. Raises `FileTooLarge` if it has more than `most` bytes, whatever size the system reports."""
    with open_regular(path, follow_links=follow_links) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > most else read_at_most(file, most + 1)
        if max(size, len(data)) > most:
            raise FileTooLarge(errno.EFBIG, f"it is larger than {_size(most)}", str(path))
        return data


def read_listed(path: str, most: int) -> bytes:
    """Read a path that a listing of its folder has just called a regular file; no link is followed. See `read_regular`.

    A walk through many files takes half the time by it.
    """
    descriptor = os.open(path, _TO_READ | _NO_LINK)
    try:
        status = os.fstat(descriptor)
        _check(status, path)
        size = status.st_size
        data = b"" if size > most else os.read(descriptor, size + 1)
        while 0 < size < len(data) <= most and (piece := os.read(descriptor, most + 1 - len(data))):
            data += piece  # it has grown
        if max(size, len(data)) > most:
            raise FileTooLarge(errno.EFBIG, f"it is larger than {_size(most)}", path)
        return data
    finally:
        os.close(descriptor)


def read_beginning(path: Path, most: int, *, follow_links: bool = True) -> bytes:
    """Read at most `most` bytes from the beginning of a file."""
    with open_regular(path, follow_links=follow_links) as file:
        return read_at_most(file, most)


def check_write_path(path: Path, paths: Paths, *, overwrite: bool) -> None:
    """Raises OSError for a path where a file that a person asked for must not be written.

    Refused are system folders, Errand's data directory `paths`, and existing paths that are not regular files.
    """
    real = os.path.join(os.path.realpath(path.parent), path.name)
    own = os.path.realpath(paths.home)
    if any(_is_inside(real, folder) for folder in _system_folders()):
        raise PermissionError(errno.EACCES, "this folder belongs to the system", str(path))
    if _is_inside(real, own) and not _is_inside(real, os.path.realpath(paths.workspaces)):
        raise PermissionError(errno.EACCES, "this folder holds Errand's own data", str(path))
    check_replaceable(path, overwrite=overwrite)


def check_replaceable(path: Path, *, overwrite: bool, folder: int | None = None) -> None:
    """Raises OSError if the path exists; with `overwrite` only if it is not a regular file."""
    try:
        status = os.lstat(path, dir_fd=folder)
    except FileNotFoundError:
        return
    except ValueError as error:
        raise OSError(errno.EINVAL, "this is no name of a file", repr(path)) from error
    _check(status, path)
    if not overwrite:
        raise FileExistsError(errno.EEXIST, "it is there already", str(path))


def is_unfinished_name(name: str) -> bool:
    """Return True for a name that `atomic_writer` gives to a file until that is complete."""
    return _UNFINISHED.fullmatch(name) is not None


def _unfinished_name() -> str:
    return f".errand-{os.urandom(8).hex()}.tmp"


@contextmanager
def atomic_writer(path: Path, *, overwrite: bool, mode: int = 0o600, folder: int | None = None) -> Generator[BinaryIO]:
    """A file to write to, which appears at `path` once it is complete and flushed to disk; an error leaves nothing.

    Replaces an existing file only with `overwrite`, and never anything but a regular file. A relative path starts at
    `folder`, if that is a descriptor.
    """
    check_replaceable(path, overwrite=overwrite, folder=folder)
    unfinished = path.with_name(_unfinished_name())  # fits even if the name itself has 255 bytes
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(unfinished, new, mode, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        if not overwrite:
            os.close(os.open(path, new, mode, dir_fd=folder))  # fails if another process was first
        check_replaceable(path, overwrite=True, folder=folder)
        os.replace(unfinished, path, src_dir_fd=folder, dst_dir_fd=folder)
        flush_folder(path.parent, folder=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise


def flush_folder(path: Path, *, folder: int | None = None) -> None:
    """Flush a directory to disk, if the system can: otherwise a new name may be lost in a power cut."""
    if os.name != "posix":
        return
    with suppress(OSError):  # some file systems cannot, and the file itself is written
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a private folder and its missing parents, and flush them to disk. Raises OSError."""
    if not path.is_dir():
        above = path.parent
        make_folder(above)
        path.mkdir(mode=0o700, exist_ok=True)
        flush_folder(above)


def _check(found: os.stat_result, path: Path | str) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise NotRegularFile(errno.EINVAL, f"it is {kind}, not a file", str(path))


def read_at_most(file: BinaryIO, most: int) -> bytes:
    """Reads by the descriptor: a file object returns None if a kernel file has no data yet."""
    pieces: list[bytes] = []
    while most > 0 and (piece := os.read(file.fileno(), min(most, 1 << 20))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _size(size: int) -> str:
    return f"{size / 1_000_000:,.0f} MB" if size >= 1_000_000 else f"{size:,} bytes"


@cache
def _system_folders() -> frozenset[str]:
    return frozenset(os.path.realpath(folder) for folder in _SYSTEM_FOLDERS)


def _is_inside(path: str, folder: str) -> bool:
    if sys.platform != "linux":
        path, folder = path.casefold(), folder.casefold()
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def write_atomically(path: Path, data: bytes, *, folder: int | None = None, mode: int | None = None) -> None:
    """Replace or create a regular file; keeps permissions and, if allowed, the owner. Raises OSError.

    With `mode` it gets these permissions. `path` must be a real path, or a name in `folder`, a descriptor. A link there
    is refused, as is anything else that is not a regular file.
    """
    old = None
    with suppress(FileNotFoundError):
        old = os.stat(path, dir_fd=folder, follow_symlinks=False)
    with atomic_writer(path, overwrite=True, mode=0o666, folder=folder) as file:
        if old:
            _keep_rights(file.fileno(), old)
        if mode is not None and os.name == "posix":
            os.fchmod(file.fileno(), mode)
        file.write(data)


def _keep_rights(descriptor: int, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        try:
            os.chown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:
            return  # another user's file: permissions meant for its owner must not apply to us
    os.chmod(descriptor, stat.S_IMODE(old.st_mode))


class _CannotKeep(Exception):
    """A new file cannot have the owner or an attribute of the one that it would replace."""


def replace_file(path: Path, data: bytes, *, folder: int | None = None, mode: int | None = None) -> None:
    """Replace or create a file of a person; keeps hard links, permissions, owner and extended attributes.

    Raises OSError. Atomic as `write_atomically`, with the same parameters, unless a new file would lose a hard link,
    the owner or an attribute: then the file is overwritten in place. The caller stores the old content first, since a
    power cut in that moment leaves a mixture.
    """
    try:
        old = os.open(path, _TO_READ | _NO_LINK, dir_fd=folder)
    except OSError:  # there is none, it is a link, or it cannot be read: also what to say of it is known there
        write_atomically(path, data, folder=folder, mode=mode)
        return
    try:
        status = os.fstat(old)
        _check(status, path)
        if status.st_nlink > 1:
            raise _CannotKeep
        with atomic_writer(path, overwrite=True, mode=0o600, folder=folder) as file:
            _keep_all(file.fileno(), old, status)
            if mode is not None and os.name == "posix":
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            _tell_apart(file.fileno(), path, status)
    except _CannotKeep:
        _overwrite(path, data, folder, mode)
    finally:
        os.close(old)


def _tell_apart(new: int, path: Path, old: os.stat_result) -> None:
    """Give a changed Python file another second than the old one of the same size.

    Python takes its bytecode of an earlier run for that of any file with the same size and second.
    """
    status = os.fstat(new)
    ahead = int(old.st_mtime) + 1 - int(status.st_mtime)
    is_like_old = path.suffix == ".py" and status.st_size == old.st_size and 0 < ahead < _MAX_AHEAD_S
    if is_like_old and os.utime in os.supports_fd:
        os.utime(new, (status.st_atime, int(old.st_mtime) + 1))


def is_read_only(path: Path, status: os.stat_result, *, folder: int | None = None) -> bool:
    """Return True if nobody, or at least not this account, may write to the file."""
    return not status.st_mode & 0o222 or not os.access(path, os.W_OK, dir_fd=folder)


def _keep_all(new: int, old: int, status: os.stat_result) -> None:
    """Give a new file what makes the old one; raises `_CannotKeep`."""
    own = os.fstat(new)
    try:
        if os.name == "posix" and (status.st_uid, status.st_gid) != (own.st_uid, own.st_gid):
            os.fchown(new, status.st_uid, status.st_gid)
        os.chmod(new, stat.S_IMODE(status.st_mode))
        if sys.platform == "linux":
            for name in os.listxattr(old):
                if name not in _ATTRIBUTES_OF_CONTENT:
                    os.setxattr(new, name, os.getxattr(old, name))
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.ENOSYS):
            raise _CannotKeep from error


def _overwrite(path: Path, data: bytes, folder: int | None, mode: int | None) -> None:
    """Overwrite a file in place. An error on the way, such as a full disk, leaves the old content."""
    binary = getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDWR | _NO_LINK | binary, dir_fd=folder)
    with open(descriptor, "r+b", buffering=0) as file:
        status = os.fstat(descriptor)
        _check(status, path)
        before = read_at_most(file, status.st_size + 1)
        try:
            _put(descriptor, data)
        except OSError:
            with suppress(OSError):
                _put(descriptor, before)
            raise
        if mode is not None and os.name == "posix":
            os.fchmod(descriptor, mode)
        _tell_apart(descriptor, path, status)


def _put(descriptor: int, data: bytes) -> None:
    """Make this the whole content, on disk. Where it can, it reserves the room before anything is overwritten."""
    if sys.platform == "linux" and len(data) > os.fstat(descriptor).st_size:
        try:
            os.posix_fallocate(descriptor, 0, len(data))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
    os.lseek(descriptor, 0, os.SEEK_SET)
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)
