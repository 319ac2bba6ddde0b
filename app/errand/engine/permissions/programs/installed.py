"""Finds the program that a name stands for: in the system, or in a folder of the user's PATH that tools cannot change.

A command that runs unasked runs with these folders alone, so that the program is the one that was judged.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from functools import lru_cache
from tempfile import gettempdir

from errand.engine.permissions.files.folder_layout import FolderLayout
from errand.system.environment import SYSTEM_PATH
from errand.system.regular_file import real_path

_SYSTEM = frozenset(real_path(folder) for folder in SYSTEM_PATH.split(":"))
_TEMPORARY = tuple({real_path(folder) for folder in ("/tmp", "/var/tmp", "/dev/shm", gettempdir())})


# Folders of programs that choose what they run by files of the working folder, such as `.tool-versions`.
_SHIMS = frozenset(("shims", ".volta", ".asdf", ".pyenv", ".rbenv", ".nodenv", "mise"))


def find_program(name: str, layout: FolderLayout, path: str) -> str | None:
    """Return the absolute path of a program; `path` is the PATH of the user.

    None if it is in no folder to be trusted.
    """
    if executable := shutil.which(name, path=SYSTEM_PATH):
        return executable
    for folder in _trusted_folders(path, layout):
        program = os.path.join(folder, name)
        real = real_path(program)
        if _is_foreign(real, layout) and _only_owner_writes(real) and _is_trusted_folder(os.path.dirname(real), layout):
            return program if os.access(program, os.X_OK) and os.path.isfile(real) else None
    return None


@lru_cache(maxsize=64)
def _trusted_folders(path: str, layout: FolderLayout) -> tuple[str, ...]:
    folders = (folder for folder in path.split(":") if folder.startswith("/"))
    return tuple(dict.fromkeys(folder for folder in folders if _is_trusted_folder(folder, layout)))


def _is_trusted_folder(folder: str, layout: FolderLayout) -> bool:
    """Return True if neither tools nor other users can put a program there: the folder, and all folders above it."""
    real = real_path(folder)
    if real in _SYSTEM:
        return True
    if not _SHIMS.isdisjoint(real.split("/")):
        return False
    return _is_foreign(real, layout) and all(map(_only_owner_writes, _with_parents(real)))


def _is_foreign(real: str, layout: FolderLayout) -> bool:
    """True outside the folders that tools may write, and outside the app's data."""
    if layout.in_workspace(real) or layout.closed_folder_of(real):
        return False
    return not any(layout.is_inside(real, folder) for folder in _TEMPORARY)


def _only_owner_writes(path: str) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & stat.S_IWOTH:
        return False
    return not status.st_mode & stat.S_IWGRP or status.st_gid in (0, os.getegid())


def _with_parents(path: str) -> Iterator[str]:
    yield path
    while (above := os.path.dirname(path)) != path:
        path = above
        yield path
