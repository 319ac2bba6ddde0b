"""What is in the data folder, and how large. Counting reads the folders anew each time, in a thread."""

import asyncio
import shutil
from pathlib import Path

from app.engine.data.files import size_of
from app.engine.storage.database import Database
from app.paths import Paths
from app.protocol.data import DataPart, DataSummaryResult


async def summary(database: Database, paths: Paths) -> DataSummaryResult:
    conversations, archived = await database.holdings.counts()
    parts, free = await asyncio.to_thread(lambda: (_parts(paths), shutil.disk_usage(paths.home).free))
    return DataSummaryResult(
        folder=str(paths.home), parts=parts, conversations=conversations, archived=archived, free_bytes=free
    )


def _parts(paths: Paths) -> tuple[DataPart, ...]:
    # What SQLite has not moved into the database yet stands beside it.
    beside = [paths.database.with_name(paths.database.name + end) for end in ("-wal", "-shm")]
    return (
        _part("Records", paths.database, "Conversations, tasks, permissions, and the index for the search", *beside),
        _part("Copies of the records", paths.copies, "Made daily and before updates (five of each), and your backups"),
        _part("Pictures", paths.attachments, "Copies of pictures that you attached"),
        _part("Long output", paths.outputs, "What commands wrote, where it was too long for a message"),
        _part("Workspaces", paths.workspaces, "Folders for tasks that were given none, and the files made in them"),
        _part("Logs", paths.logs, "For finding errors; no texts of conversations"),
        _part("Keys", paths.keys, "The encrypted key file, where the system has no keyring"),
        _part("Settings", paths.settings, "Your settings"),
    )


def _part(name: str, place: Path, about: str, *beside: Path) -> DataPart:
    sizes = [size_of(file) for file in (place, *beside)]
    files = sizes[0][1]
    return DataPart(name=name, path=str(place), about=about, bytes=sum(size for size, _ in sizes), files=files)
