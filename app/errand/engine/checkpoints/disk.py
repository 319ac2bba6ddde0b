"""Reads and restores files of a workspace, exactly and one at a time. Called in the threads of the workspace."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from errand.engine.checkpoints.contents import LARGEST, id_of
from errand.engine.checkpoints.history import CannotRestore, Version
from errand.engine.sandbox.protected_files import note_own_write
from errand.engine.tools.base import ToolError
from errand.engine.tools.files.real_path import name_in, opened_folder
from errand.protocol.changes import FOLDER, NOTHING
from errand.regular_file import NotRegularFile, open_regular, read_at_most, replace_file

# Of a path where there is something else than a file or a folder, or a file that is too large to be kept.
OTHER = "other"


def read_version(path: Path) -> Version:
    """What is at a resolved path now. Raises OSError."""
    try:
        with (
            opened_folder(path.parent) as folder,
            open_regular(name_in(folder, path), follow_links=False, folder=folder) as file,
        ):
            found = os.fstat(file.fileno())
            data = read_at_most(file, LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Version(NOTHING)
    except NotRegularFile:
        return Version(FOLDER if path.is_dir() and not path.is_symlink() else OTHER)
    except ToolError:  # a folder above has become a link
        return Version(OTHER)
    if len(data) > LARGEST:
        return Version(OTHER)
    return Version(id_of(data), data, stat.S_IMODE(found.st_mode))


def restore(path: Path, version: Version, expected: str) -> None:
    """Make the file this version, if it still has the content `expected`.

    Raises `CannotRestore` if not, and OSError. A file is replaced atomically, unless that would break a hard link.
    """
    if read_version(path).content != expected:
        raise CannotRestore("it was changed at this moment; look at it again")
    note_own_write(path)
    try:
        with opened_folder(path.parent, make=version.content != NOTHING) as folder:
            name = name_in(folder, path)
            if version.content == NOTHING:
                (os.rmdir if expected == FOLDER else os.unlink)(name, dir_fd=folder)
            elif version.content == FOLDER:
                os.mkdir(name, dir_fd=folder)
            else:
                assert version.data is not None, "the history gives the bytes of files"
                replace_file(name, version.data, folder=folder, mode=version.mode)
    except ToolError as error:
        raise CannotRestore("it leads to another place than when it was changed") from error
    if version.content == NOTHING:
        _remove_empty(path, version.made_folders)


def _remove_empty(path: Path, count: int) -> None:
    """Remove the folders that were made with a file, as far as they are empty."""
    with suppress(OSError):
        for above in list(path.parents)[:count]:
            above.rmdir()
