"""The copy of each day: made while tasks run, in a thread of its own, and given up at once when the engine ends."""

import asyncio
import logging
import shutil
import sqlite3
import threading
import time
from pathlib import Path

from app.engine.health import Health
from app.engine.storage.copies import copy_of_today, newest_daily
from app.engine.storage.trouble import condition, kind_of

_logger = logging.getLogger(__name__)

_DAY_S = 24 * 3600.0
# An engine that has just started has better things to do.
_FIRST_S = 60.0
# After a copy that failed, for want of room for example.
_AGAIN_S = 3600.0


class _EngineEnds(Exception):
    pass


class DailyCopies:
    """`run` until it is cancelled. A copy that is damaged is reported: the database is too."""

    def __init__(self, database: Path, folder: Path, health: Health) -> None:
        self._database = database
        self._folder = folder
        self._health = health
        self._ends = threading.Event()

    async def run(self) -> None:
        wait = max(_FIRST_S, self._due_in())
        while True:
            await asyncio.sleep(wait)
            made = await self.make()
            wait = max(_FIRST_S, self._due_in()) if made else _AGAIN_S

    async def make(self) -> bool:
        """Copy and look through it if anything has changed; False if it could not be done."""
        try:
            fault = await asyncio.to_thread(self._make)
        except asyncio.CancelledError:
            self._ends.set()  # the thread sees it at its next step
            raise
        except (sqlite3.Error, OSError) as error:
            if kind_of(error) != "damaged":
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
            return copy_of_today(self._database, self._folder, self._step)
        except _EngineEnds:
            return ""
        except sqlite3.OperationalError:
            if self._ends.is_set():
                return ""
            raise

    def _step(self) -> None:
        if self._ends.is_set():
            raise _EngineEnds

    def _due_in(self) -> float:
        newest = newest_daily(self._database, self._folder)
        if newest is None:
            return 0.0
        return min(
            _DAY_S, _DAY_S - (time.time() - newest.stat().st_mtime)
        )  # a clock that was ahead is no reason to wait
