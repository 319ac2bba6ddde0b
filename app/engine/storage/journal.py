"""The single writer with group commit: what many tasks put is committed together, in order."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, assert_never

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.engine.errors import Busy, StorageError
from app.engine.storage.failure import not_saved, reason
from app.engine.storage.write import Write
from app.engine.storage.writer import Writer

T = TypeVar("T")

_log = logging.getLogger(__name__)

# Groups in one transaction at most: keeps a commit short while the queue is long.
_BATCH = 1000


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class _Mark:
    """A flush that waits for everything before it."""

    done: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class _Turn:
    """A transaction of its own: the queue stands from `granted` to `over`."""

    granted: asyncio.Future[None]
    over: asyncio.Future[None]


_Entry: TypeAlias = _Group | _Mark | _Turn


class Journal:
    """Every change of the database goes through here, in the order it is put."""

    def __init__(self, writer: Writer, engine: AsyncEngine, limit: int = 100_000) -> None:
        self._writer = writer
        self._engine = engine
        self._limit = limit
        self._entries: deque[_Entry] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._failure: StorageError | None = None
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run(), name="storage journal")

    def put(self, *writes: Write) -> None:
        """Queue one group without waiting: all of it is committed or none. Busy when the queue is full.

        Then each `on_commit` is called in order; a group that fails is logged, and fails the next flush.
        """
        if len(self._entries) >= self._limit:
            raise Busy(f"{self._limit:,} changes wait to be saved: the disk does not keep up. Try again shortly.")
        self._add(_Group(writes))

    async def flush(self) -> None:
        """Return once everything put so far is committed.

        StorageError if a group failed that was put after the flush before this one and before this one.
        """
        mark = _Mark(self._loop.create_future())
        self._add(mark)
        await mark.done

    async def transact(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Read, decide and write alone, in queue order, in one transaction; an error of `work` rolls it back.

        The journal stands still meanwhile: `work` must not wait for a flush.
        """
        turn = _Turn(self._loop.create_future(), self._loop.create_future())
        self._add(turn)
        try:
            await turn.granted
            return await self._transact(work)
        finally:
            turn.over.set_result(None)

    async def _transact(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        try:
            async with self._engine.begin() as connection:
                if connection.dialect.name == "sqlite":
                    await connection.exec_driver_sql("BEGIN IMMEDIATE")
                return await work(connection)
        except SQLAlchemyError as error:
            raise not_saved(reason(error)) from error

    async def close(self) -> None:
        """Commit what is queued, then end. What is put later is refused; a second call only waits."""
        first = not self._closing
        self._closing = True
        self._wake.set()
        await asyncio.shield(self._task)
        if first:
            await self._writer.close()

    def _add(self, entry: _Entry) -> None:
        if self._closing:
            raise StorageError("The database is closed; the change was not saved.")
        self._entries.append(entry)
        self._wake.set()

    async def _run(self) -> None:
        while self._entries or not self._closing:
            if not self._entries:
                self._wake.clear()
                await self._wake.wait()
                continue
            batch = self._take()
            failures = await self._commit([entry for entry in batch if isinstance(entry, _Group)])
            for entry in batch:
                await self._settle(entry, failures)

    def _take(self) -> list[_Entry]:
        """What goes into the next transaction; a turn is always the last of its batch."""
        batch: list[_Entry] = []
        while self._entries and len(batch) < _BATCH:
            batch.append(self._entries.popleft())
            if isinstance(batch[-1], _Turn):
                break
        return batch

    async def _commit(self, groups: list[_Group]) -> dict[_Group, StorageError]:
        """Commit all groups at once or, if that fails, each for itself; the failed ones with their errors."""
        if not groups:
            return {}
        try:
            await self._writer.write([write for group in groups for write in group.writes])
            return {}
        except StorageError as error:
            if len(groups) == 1:
                return {groups[0]: error}
        failures: dict[_Group, StorageError] = {}
        for group in groups:
            failures |= await self._commit([group])
        return failures

    async def _settle(self, entry: _Entry, failures: dict[_Group, StorageError]) -> None:
        match entry:
            case _Group() if entry in failures:
                self._failure = failures[entry]
                tables = ", ".join(str(write.statement.table) for write in entry.writes)
                _log.error("a change of %s was lost: %s", tables, self._failure)
            case _Group():
                for write in entry.writes:
                    if write.on_commit is not None:
                        # By way of the loop: what a callback raises goes to the loop's handler, not into the journal.
                        self._loop.call_soon(write.on_commit)
            case _Mark(done):
                self._answer(done)
                # Each waiter goes on in a turn of the loop of its own: what fifty do next would hold up all others.
                await asyncio.sleep(0)
            case _Turn(granted, over):
                if not granted.done():
                    granted.set_result(None)
                    await over
            case _:
                assert_never(entry)

    def _answer(self, done: asyncio.Future[None]) -> None:
        if done.done():
            return  # its flush was cancelled; a failure waits for the next one
        failure, self._failure = self._failure, None
        if failure is None:
            done.set_result(None)
        else:
            done.set_exception(failure)
