"""Reads and restores files of a workspace, exactly and one at a time. Called in the threads of the workspace."""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from errand.engine.checkpoints.contents import MAX_FILE_BYTES, ContentStore, id_of
from errand.engine.checkpoints.history import CannotRestore, Version
from errand.engine.sandbox.protected_files import note_own_write
from errand.engine.tools.files.real_path import name_in, opened_folder
from errand.engine.tools.results import ToolError
from errand.protocol.changes import FOLDER, NOTHING, Change
from errand.system.regular_file import NotRegularFile, is_unfinished_name, open_regular, read_at_most, replace_file

# Of a path where there is something else than a file or a folder, or a file that is too large to be kept.
OTHER = "other"
# The times of files are a little coarser than the clock.
_CLOCK_GRAIN_S = 1.0
# Of a folder, until its files are restored: they may be private. The other is for one whose permissions are not known.
_FILLED_MODE, _DEFAULT_MODE = 0o700, 0o777


def read_version(path: Path) -> Version:
    """Return what is at a resolved path now. Raises OSError."""
    try:
        with (
            opened_folder(path.parent) as folder,
            open_regular(name_in(folder, path), follow_links=False, folder=folder) as file,
        ):
            status = os.fstat(file.fileno())
            data = read_at_most(file, MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Version(NOTHING)
    except NotRegularFile:
        status = path.lstat()
        return folder_version(status) if stat.S_ISDIR(status.st_mode) else Version(OTHER)
    except ToolError:  # a folder above has become a link
        return Version(OTHER)
    if len(data) > MAX_FILE_BYTES:
        return Version(OTHER)
    return Version(id_of(data), data, stat.S_IMODE(status.st_mode))


def folder_version(status: os.stat_result) -> Version:
    return Version(FOLDER, mode=stat.S_IMODE(status.st_mode))


def restore(path: Path, version: Version, expected: str) -> None:
    """Make the file this version, if it still has the content `expected`.

    Raises `CannotRestore` if not, and OSError. A file is replaced atomically, unless that would break a hard link.
    A folder can be filled then: its permissions are set by `restore_folder_mode`.
    """
    current = read_version(path).content
    if current == version.content and version.data is not None:
        return  # another name of the file was restored already
    if current != expected:
        raise CannotRestore("it was changed at this moment; look at it again")
    note_own_write(path)
    try:
        with opened_folder(path.parent, make=version.content != NOTHING) as folder:
            name = name_in(folder, path)
            if version.content == NOTHING:
                (os.rmdir if expected == FOLDER else os.unlink)(name, dir_fd=folder)
            elif version.content == FOLDER:
                if expected != NOTHING:
                    os.unlink(name, dir_fd=folder)
                os.mkdir(name, _DEFAULT_MODE if version.mode is None else _FILLED_MODE, dir_fd=folder)
            else:
                assert version.data is not None, "the history gives the bytes of files"
                if expected == FOLDER:
                    os.rmdir(name, dir_fd=folder)
                replace_file(name, version.data, folder=folder, mode=version.mode)
    except ToolError as error:
        raise CannotRestore("it leads to another place than when it was changed") from error
    if version.content == NOTHING:
        _remove_empty(path, version.made_folders)


def restore_folder_mode(path: Path, mode: int) -> None:
    """Set the permissions of a folder that was made and filled. Raises OSError."""
    if os.name != "posix":
        return
    try:
        with opened_folder(path.parent) as parent:
            folder = os.open(name_in(parent, path), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except ToolError as error:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
    try:
        os.fchmod(folder, mode)
    finally:
        os.close(folder)


def remove_unfinished(folder: Path, changes: Sequence[Change], contents: ContentStore) -> int:
    """Remove the files that killed engines left in a folder, half written; returns their number. Raises OSError.

    One is ours if it has such a name, is newer than a change noted in this folder, and holds the beginning of what that
    change writes. Everything else stays.
    """
    removed = 0
    with opened_folder(folder) as opened:
        for name in filter(is_unfinished_name, os.listdir(folder)):
            path = name_in(opened, folder / name)
            if _is_ours(path, opened, changes, contents):
                os.unlink(path, dir_fd=opened)
                removed += 1
    return removed


def _is_ours(path: Path, folder: int | None, changes: Sequence[Change], contents: ContentStore) -> bool:
    try:
        with open_regular(path, follow_links=False, folder=folder) as file:
            status = os.fstat(file.fileno())
            data = read_at_most(file, MAX_FILE_BYTES + 1)
    except OSError:
        return False
    if status.st_nlink != 1 or len(data) > MAX_FILE_BYTES or (os.name == "posix" and status.st_uid != os.geteuid()):
        return False
    written = (
        contents.get(change.after) for change in changes if change.at.timestamp() <= status.st_mtime + _CLOCK_GRAIN_S
    )
    return any(content is not None and content.startswith(data) for content in written)


def _remove_empty(path: Path, count: int) -> None:
    """Remove the folders that were made with a file, as far as they are empty."""
    with suppress(OSError):
        for above in list(path.parents)[:count]:
            above.rmdir()
