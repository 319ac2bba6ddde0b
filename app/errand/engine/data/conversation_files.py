"""Files that belong to conversations: paths, sizes and deletion; data summary and orphans."""

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from errand.engine.storage.database import Database, ServerDatabase
from errand.protocol.conversations import Conversation
from errand.protocol.data import DataPart, DataSummaryResult, Orphan, OrphansResult
from errand.system.paths import Paths
from errand.text.translation import marked

_log = logging.getLogger(__name__)

# A picture is copied shortly before the message that names it is stored, so young copies stay.
_YOUNG_S = 3600


def output_folders(paths: Paths, task_ids: Iterable[str]) -> tuple[Path, ...]:
    """Return the folders for long output of these tasks, which may not exist."""
    return tuple(_inside(paths.outputs, task_id) for task_id in task_ids)


def default_workspace(paths: Paths, conversation_id: str) -> Path:
    """Return the default workspace of a conversation."""
    return _inside(paths.workspaces, conversation_id)


def delete_files(paths: Paths, files: Iterable[str], used: frozenset[str]) -> None:
    """Delete long output, pictures not in `used`, and empty workspaces; other files stay."""
    for file in map(Path, files):
        if file.parent == paths.outputs:
            _delete_folder(file)
        elif file.parent == paths.workspaces:
            with suppress(OSError):  # it does not exist, or has the person's files
                file.rmdir()
        elif file.parent.parent == paths.attachments and str(file) not in used:
            _delete_picture(file)


def unused_pictures(paths: Paths, used: frozenset[str]) -> tuple[str, ...]:
    """Return the copies that no message names, older than an hour."""
    before = time.time() - _YOUNG_S
    return tuple(
        str(file)
        for folder in _entries(paths.attachments)
        if folder.stat().st_mtime < before
        for file in _entries(folder)
        if str(file) not in used
    )


def output_names(paths: Paths) -> tuple[str, ...]:
    """Return the tasks that have long output on disk."""
    return tuple(folder.name for folder in _entries(paths.outputs))


def size_of(path: Path) -> tuple[int, int]:
    """Size in bytes and number of files of a folder or a file; skips unreadable files."""
    if not path.is_dir():
        return (path.stat().st_size, 1) if path.is_file() else (0, 0)
    size = count = 0
    rest = [os.fspath(path)]
    while rest:  # os.walk recurses per level, and a task may have created many
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


def _entries(folder: Path) -> tuple[Path, ...]:
    return tuple(folder.iterdir()) if folder.is_dir() else ()


def _delete_folder(folder: Path) -> None:
    with suppress(RecursionError):  # a very deep tree
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        _log.warning("%s could not be deleted completely", folder)


def _delete_picture(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)
        file.parent.rmdir()  # stays if the same picture exists under another name


async def summary(database: Database, paths: Paths) -> DataSummaryResult:
    conversations, archived = await database.storage_stats.counts()
    server = await database.on_server()
    parts, free = await asyncio.to_thread(lambda: (_parts(paths, server), shutil.disk_usage(paths.home).free))
    return DataSummaryResult(
        folder=str(paths.home), parts=parts, conversations=conversations, archived=archived, free_bytes=free
    )


def _parts(paths: Paths, server: ServerDatabase | None) -> tuple[DataPart, ...]:
    return (
        _records(paths, server),
        _part(
            marked("Copies of the records"),
            paths.copies,
            marked("Made daily and before updates (five of each), and your backups"),
        ),
        _part(marked("Pictures"), paths.attachments, marked("Copies of pictures that you attached")),
        _part(marked("Long output"), paths.outputs, marked("What commands wrote, where it was too long for a message")),
        _part(
            marked("Replaced files"), paths.replaced, marked("What tasks replaced in your files, to undo their changes")
        ),
        _part(
            marked("Workspaces"),
            paths.workspaces,
            marked("Folders for tasks that were given none, and the files made in them"),
        ),
        _part(marked("Caches"), paths.cache, marked("Downloads of package managers that ran in the sandbox")),
        _part(marked("Logs"), paths.logs, marked("For finding errors; no texts of conversations")),
        _part(marked("Keys"), paths.keys, marked("The encrypted key file, where the system has no keyring")),
        _part(marked("Settings"), paths.settings, marked("Your settings")),
    )


def _records(paths: Paths, server: ServerDatabase | None) -> DataPart:
    if server is not None:
        about = marked("Conversations, tasks, permissions and the search index, on a server")
        return DataPart(name=marked("Records"), path="", about=about, bytes=server.bytes, files=1, server=server.name)
    # Includes the write-ahead log of SQLite.
    log_files = [paths.database.with_name(paths.database.name + end) for end in ("-wal", "-shm")]
    about = marked("Conversations, tasks, permissions and the search index")
    return _part(marked("Records"), paths.database, about, *log_files)


def _part(name: str, path: Path, about: str, *further_files: Path) -> DataPart:
    sizes = [size_of(file) for file in (path, *further_files)]
    files = sizes[0][1]
    return DataPart(name=name, path=str(path), about=about, bytes=sum(size for size, _ in sizes), files=files)


async def orphaned(database: Database, paths: Paths, limit: int) -> OrphansResult:
    """Return the `limit` largest orphans, and the count and size of all."""
    orphans = [await _orphan_with_size(database, paths, orphan) for orphan in await database.storage_stats.orphans()]
    orphans.sort(key=lambda orphan: orphan.bytes, reverse=True)
    return OrphansResult(
        orphans=tuple(orphans[:limit]), count=len(orphans), bytes=sum(orphan.bytes for orphan in orphans)
    )


async def _orphan_with_size(database: Database, paths: Paths, conversation: Conversation) -> Orphan:
    weight = await database.storage_stats.sizes(conversation.id)
    folders = output_folders(paths, weight.task_ids)
    size = await asyncio.to_thread(lambda: sum(size_of(folder)[0] for folder in folders)) if folders else 0
    return Orphan(conversation=conversation, nodes=weight.nodes, bytes=weight.bytes + size)
