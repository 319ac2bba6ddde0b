"""Copies of a database: before each migration, and one of each day on which something changed; five of each kind."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from app import database_file
from app.engine.errors import StorageError

_KEPT = 5
_DAILY = "daily"
_SECOND_NS = 1_000_000_000


def copy_database(source: Path, folder: Path, label: str) -> Path:
    """A copy before a migration from the schema `label`; StorageError if none can be made."""
    try:
        _bring_back(source, folder)
        copy = _copy(source, folder, label, lambda left, total: None)
    except (sqlite3.Error, OSError) as error:
        raise StorageError(
            f"No copy of {source} could be made in {folder} ({error}), so it was not migrated and nothing was "
            "changed. Make room or mend the rights of the folder, then start again."
        ) from error
    _drop_old(folder, f"{source.stem}-[0-9]*.db")
    return copy


def copy_of_today(source: Path, folder: Path, step: Callable[[], None]) -> str:
    """A copy of this day, looked through; empty, or what is wrong with it: then the older ones are all kept.

    Nothing is copied where nothing has happened since the last one, but the database is looked through.
    `step` is called often; what it raises ends the work. Raises sqlite3.Error or OSError.
    """
    _bring_back(source, folder)
    newest = newest_daily(source, folder)
    if newest is not None and _head(newest) == _head(source):
        if not (fault := _fault(source, step)):
            newest.touch()  # it holds all there is: it is as good as one of today
        return fault
    copy = _copy(source, folder, _DAILY, lambda left, total: step())
    fault = _fault(copy, step)
    if fault:
        copy.unlink()
    else:
        _drop_old(folder, f"{source.stem}-{_DAILY}-*.db")
    return fault


def newest_daily(source: Path, folder: Path) -> Path | None:
    return max(_copies(folder, f"{source.stem}-{_DAILY}-*.db"), key=_age, default=None)


def _copy(source: Path, folder: Path, label: str, done: Callable[[int, int], None]) -> Path:
    copy = folder / f"{source.stem}-{label}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.db"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    database_file.copy_database(source, copy, done)
    return copy


def _head(file: Path) -> tuple[str, int]:
    """The event log's name and the newest event: whatever changes is an event."""
    with closing(database_file.open_to_read(file)) as connection:
        query = "SELECT (SELECT value FROM meta WHERE name = 'epoch'), coalesce(max(sequence), 0) FROM events"
        epoch, head = connection.execute(query).fetchone()
        return str(epoch), int(head)


def _fault(file: Path, step: Callable[[], None]) -> str:
    with closing(database_file.open_to_read(file)) as connection:
        connection.set_progress_handler(step, 1_000_000)
        # The quick check does not look whether the indexes hold what the tables hold: then lists lack rows silently.
        (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        return "" if answer == "ok" else str(answer)


def _bring_back(source: Path, folder: Path) -> None:
    """Give copies that a clock ahead has dated the time of now, in their order: what comes next is newer."""
    now = time.time_ns()
    ahead = sorted(
        (file for file in _copies(folder, f"{source.stem}-*.db") if _age(file) > now), key=_age, reverse=True
    )
    for place, file in enumerate(ahead, start=1):
        os.utime(file, ns=(now, now - place * _SECOND_NS))


def _drop_old(folder: Path, pattern: str) -> None:
    for old in sorted(_copies(folder, pattern), key=_age)[:-_KEPT]:
        old.unlink()


def _copies(folder: Path, pattern: str) -> list[Path]:
    """Files alone: people put links there, and take away what they lead to."""
    return [file for file in folder.glob(pattern) if file.is_file() and not file.is_symlink()]


def _age(file: Path) -> int:
    return file.stat().st_mtime_ns
