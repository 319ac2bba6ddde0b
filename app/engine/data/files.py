"""The files of Errand's own that belong to conversations: where they are, how large, and how they go.

Synchronous: meant for a thread. What a task made in a folder of the person's is never touched.
"""

import logging
import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from app.paths import Paths

_log = logging.getLogger(__name__)

# A picture is copied a moment before the message that names it is stored: young copies are left alone.
_YOUNG_S = 3600


def output_folders(paths: Paths, task_ids: Iterable[str]) -> tuple[Path, ...]:
    """Where the long output of these tasks is, whether there is any or not."""
    return tuple(_inside(paths.outputs, task_id) for task_id in task_ids)


def own_workspace(paths: Paths, conversation_id: str) -> Path:
    """The folder that is made for a conversation that was given none."""
    return _inside(paths.workspaces, conversation_id)


def delete_files(paths: Paths, files: Iterable[str], used: frozenset[str]) -> None:
    """Delete long output, pictures that are not in `used`, and workspaces that are empty; the rest stays."""
    for file in map(Path, files):
        if file.parent == paths.outputs:
            _delete_folder(file)
        elif file.parent == paths.workspaces:
            with suppress(OSError):  # not there, or the person's work is in it
                file.rmdir()
        elif file.parent.parent == paths.attachments and str(file) not in used:
            _delete_picture(file)


def unused_pictures(paths: Paths, used: frozenset[str]) -> tuple[str, ...]:
    """Copies that no message names, older than an hour."""
    before = time.time() - _YOUNG_S
    return tuple(
        str(file)
        for folder in _listed(paths.attachments)
        if folder.stat().st_mtime < before
        for file in _listed(folder)
        if str(file) not in used
    )


def output_names(paths: Paths) -> tuple[str, ...]:
    """Tasks that have long output on disk."""
    return tuple(folder.name for folder in _listed(paths.outputs))


def size_of(place: Path) -> tuple[int, int]:
    """Bytes and number of the files in a folder, or of a file; what cannot be read counts nothing."""
    if not place.is_dir():
        return (place.stat().st_size, 1) if place.is_file() else (0, 0)
    size = count = 0
    rest = [os.fspath(place)]
    while rest:  # os.walk calls itself once for each level, and a task may have made many
        with suppress(OSError), os.scandir(rest.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    rest.append(entry.path)
                    continue
                with suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_size
                    count += 1
    return size, count


def _inside(folder: Path, name: str) -> Path:
    assert Path(name).name == name and name != "..", "an id names one folder"
    return folder / name


def _listed(folder: Path) -> tuple[Path, ...]:
    return tuple(folder.iterdir()) if folder.is_dir() else ()


def _delete_folder(folder: Path) -> None:
    with suppress(RecursionError):  # a very deep tree
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        _log.warning("%s could not be deleted whole", folder)


def _delete_picture(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)
        file.parent.rmdir()  # stays where the same picture has another name too
