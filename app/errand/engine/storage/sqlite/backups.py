"""Copies of the database: before each migration and once a day; five of each."""

import asyncio
import logging
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from errand.engine.core.errors import StorageError
from errand.engine.core.resources import Health
from errand.engine.storage.sql.errors import condition, condition_kind
from errand.system import database_file
from errand.text.printable import reason

_MAX_COPIES = 5
_DAILY = "daily"
_SECOND_NS = 1_000_000_000

_logger = logging.getLogger(__name__)

_DAY_S = 24 * 3600.0
# Delays the first copy, to keep the engine's start fast.
_FIRST_S = 60.0
# Retry interval after a failed copy, for example for lack of disk space.
_RETRY_S = 3600.0


def back_up_before_migration(source: Path, folder: Path, label: str) -> Path:
    """Copy the database before a migration from the schema `label`. Raises `StorageError` if that fails."""
    try:
        _fix_future_times(source, folder)
        copy = _copy(source, folder, label, lambda left, total: None)
    except (sqlite3.Error, OSError) as error:
        raise StorageError(
            f"No copy of {source} could be made in {folder} ({reason(error)}), so it was not migrated and nothing was "
            "changed. Make room or mend the rights of the folder, then start again."
        ) from error
    _drop_old(folder, f"{source.stem}-[0-9]*.db")
    return copy


def back_up_today(source: Path, folder: Path, step: Callable[[], None]) -> str:
    """Make and check the daily copy. Returns the fault found, or an empty text; a fault keeps all older copies.

    Without changes since the last copy it only checks the database. `step` is called often and may raise to abort.
    Raises sqlite3.Error or OSError.
    """
    _fix_future_times(source, folder)
    newest = newest_daily(source, folder)
    if newest is not None and _head(newest) == _head(source):
        if not (fault := _fault(source, step)):
            newest.touch()  # it has all data, so it counts as today's copy
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
    """Return the event log's epoch and its newest event: every change is an event."""
    with closing(database_file.open_to_read(file)) as connection:
        query = "SELECT (SELECT value FROM meta WHERE name = 'epoch'), coalesce(max(sequence), 0) FROM events"
        epoch, head = connection.execute(query).fetchone()
        return str(epoch), int(head)


def _fault(file: Path, step: Callable[[], None]) -> str:
    with closing(database_file.open_to_read(file)) as connection:
        connection.set_progress_handler(step, 1_000_000)
        # The quick check does not compare indexes with tables: such damage makes lists lack rows silently.
        (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        return "" if answer == "ok" else str(answer)


def _fix_future_times(source: Path, folder: Path) -> None:
    """Set copies dated in the future by a wrong clock to now, keeping their order, so that the next copy is newer."""
    now = time.time_ns()
    ahead = sorted(
        (file for file in _copies(folder, f"{source.stem}-*.db") if _age(file) > now), key=_age, reverse=True
    )
    for number, file in enumerate(ahead, start=1):
        os.utime(file, ns=(now, now - number * _SECOND_NS))


def _drop_old(folder: Path, pattern: str) -> None:
    for old in sorted(_copies(folder, pattern), key=_age)[:-_MAX_COPIES]:
        old.unlink()


def _copies(folder: Path, pattern: str) -> list[Path]:
    """Regular files only: users place links there, and remove their targets."""
    return [file for file in folder.glob(pattern) if file.is_file() and not file.is_symlink()]


def _age(file: Path) -> int:
    return file.stat().st_mtime_ns


class _Cancelled(Exception):
    pass


class DailyBackups:
    """Await `run` until it is cancelled. Reports a damaged copy, since the database is then damaged too."""

    def __init__(self, database: Path, folder: Path, health: Health) -> None:
        self._database = database
        self._folder = folder
        self._health = health
        self._cancelled = threading.Event()

    async def run(self) -> None:
        wait = max(_FIRST_S, self._due_in())
        while True:
            await asyncio.sleep(wait)
            succeeded = await self.make()
            wait = max(_FIRST_S, self._due_in()) if succeeded else _RETRY_S

    async def make(self) -> bool:
        """Copy and check the database if it has changed; False if that failed."""
        try:
            fault = await asyncio.to_thread(self._make)
        except asyncio.CancelledError:
            self._cancelled.set()  # the thread checks this at its next step
            raise
        except (sqlite3.Error, OSError) as error:
            if condition_kind(error) != "damaged":
                _logger.warning("no daily copy of the database: %s", error)
                return False
            fault = str(error)
        if fault:
            _logger.error("the database is damaged: %s", fault)
            self._health.report(condition("damaged", str(self._database)))
        return not fault

    def _make(self) -> str:
        size, free = self._database.stat().st_size, shutil.disk_usage(self._database.parent).free
        if free < 3 * size:
            raise OSError(f"{free / 1e6:.0f} MB free are too few for a copy of {size / 1e6:.0f} MB")
        try:
            return back_up_today(self._database, self._folder, self._step)
        except _Cancelled:
            return ""
        except sqlite3.OperationalError:
            if self._cancelled.is_set():
                return ""
            raise

    def _step(self) -> None:
        if self._cancelled.is_set():
            raise _Cancelled

    def _due_in(self) -> float:
        newest = newest_daily(self._database, self._folder)
        if newest is None:
            return 0.0
        return min(_DAY_S, _DAY_S - (time.time() - newest.stat().st_mtime))  # clamped in case the clock was ahead
