"""The thread in which the index of words is used, and what happens when its file is damaged."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar

from errand.engine.core.errors import EngineError, InvalidParams
from errand.engine.core.fair_share import short_switches
from errand.engine.memory.index import IndexOutdated, WordIndex
from errand.text.printable import reason

T = TypeVar("T")

_logger = logging.getLogger(__name__)

# Errors of the disk that go away: the file itself is whole.
_TRANSIENT_ERRORS = ("full", "locked", "disk i/o", "unable to open", "interrupted")
# Of SQLite's virtual machine: less than a millisecond.
_STEPS_BETWEEN_CHECKS = 10_000


class IndexUnavailable(EngineError):
    """The index cannot be used now. The text says why."""


class IndexThread:
    """A damaged file, or one of another version, is thrown away: the index is empty then and `generation` grows."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.generation = 0
        self._index: WordIndex | None = None
        self._thread = ThreadPoolExecutor(1, "memory")

    async def run(self, work: Callable[[WordIndex], T]) -> T:
        """Run work in the thread. Raises `IndexUnavailable`, and `InvalidParams` for values that no index holds.

        What `work` changed in a transaction is undone then.
        """
        with short_switches():
            return await asyncio.get_running_loop().run_in_executor(self._thread, partial(self._run, work))

    async def read(self, work: Callable[[WordIndex], T]) -> T:
        """Run work that only reads: it ends soon after its caller was cancelled, so that others go on."""
        caller_left = Event()
        try:
            return await self.run(partial(_read, work, caller_left))
        finally:
            caller_left.set()

    async def clear(self) -> None:
        """Begin with an empty file. Raises `IndexUnavailable`."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._clear)
        except OSError as error:
            raise IndexUnavailable(f"The index of memory cannot be removed: {reason(error)}.") from error

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _run(self, work: Callable[[WordIndex], T]) -> T:
        try:
            try:
                return work(self._opened())
            except (sqlite3.Error, IndexOutdated) as error:
                if not self._is_lost(error):
                    raise
                _logger.warning("the index of memory is thrown away: %s", str(error) or "another version")
                self._clear()
                return work(self._opened())
        except (OverflowError, UnicodeEncodeError) as error:
            raise InvalidParams(f"Memory cannot look for this value: {error}.") from error
        except (sqlite3.Error, OSError) as error:
            self._close()
            raise IndexUnavailable(f"The index of memory cannot be used: {error}. It is tried again.") from error

    def _opened(self) -> WordIndex:
        if self._index is None:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._index = WordIndex(self.file)
        return self._index

    def _is_lost(self, error: Exception) -> bool:
        """Return True if the file is damaged, was deleted meanwhile, or is of another version."""
        if not isinstance(error, sqlite3.Error) or not self.file.exists():
            return True
        text = str(error).lower()
        return isinstance(error, sqlite3.DatabaseError) and not any(phrase in text for phrase in _TRANSIENT_ERRORS)

    def _clear(self) -> None:
        self._close()
        self.generation += 1
        for suffix in ("", "-wal", "-shm", "-journal"):
            self.file.with_name(self.file.name + suffix).unlink(missing_ok=True)

    def _close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None


def _read(work: Callable[[WordIndex], T], caller_left: Event, index: WordIndex) -> T:
    index.connection.set_progress_handler(caller_left.is_set, _STEPS_BETWEEN_CHECKS)
    try:
        return work(index)
    finally:
        index.connection.set_progress_handler(None, 0)
