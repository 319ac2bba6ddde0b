"""The single writer with group commit: what many tasks put is committed together, in order."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, assert_never

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.engine.errors import Busy, CannotSave, StorageError
from app.engine.health import Health
from app.engine.storage.failure import not_saved, reason
from app.engine.storage.tables import meta
from app.engine.storage.trouble import condition, kind_of
from app.engine.storage.upsert import Upsert
from app.engine.storage.write import Write
from app.engine.storage.writer import Writer

T = TypeVar("T")

_log = logging.getLogger(__name__)

# Groups in one transaction at most: keeps a commit short while the queue is long.
_BATCH = 1000
# While nothing can be saved it is tried again this often.
_AGAIN_S = 1.0
_PROBE = Write(Upsert(meta, ["name"], ["value"]), {"name": "probe", "value": ""})


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


@dataclass(frozen=True, slots=True)
class _Probe:
    """A change of nothing, to see whether one can be saved."""

    done: asyncio.Future[None]


_Entry: TypeAlias = _Group | _Mark | _Turn | _Probe


class Journal:
    """Every change of the database goes through here, in the order it is put.

    A patient journal keeps what it cannot save for reasons of the ground (a full disk, a lock) and tries again until
    it can: who flushes waits. Until `endure` and after `hurry` such a change is lost, and fails the flush.
    """

    def __init__(self, writer: Writer, engine: AsyncEngine, limit: int = 100_000) -> None:
        self._writer = writer
        self._engine = engine
        self.health = Health()
        self._limit = limit
        self._entries: deque[_Entry] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._failure: StorageError | None = None
        self._hurried = asyncio.Event()
        self._hurried.set()
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

    def endure(self) -> None:
        """From now on wait out what keeps changes from being saved."""
        self._hurried.clear()

    def hurry(self) -> None:
        """Try once more, then give up what cannot be saved: the engine ends."""
        self._hurried.set()

    async def probe(self) -> None:
        """See that a change can be saved now; `CannotSave`, with what to do, if not."""
        if self.health.holding is None:
            probe = _Probe(self._loop.create_future())
            self._add(probe)
            await probe.done
        else:
            raise self._refusal()

    async def transact(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Read, decide and write alone, in queue order, in one transaction; an error of `work` rolls it back.

        The journal stands still meanwhile: `work` must not wait for a flush. `CannotSave` at once while it cannot.
        """
        if self.health.holding is not None:
            raise self._refusal()
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
        self._hurried.set()
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
        """What goes into the next transaction; a turn or a probe is always the last of its batch."""
        batch: list[_Entry] = []
        while self._entries and len(batch) < _BATCH:
            batch.append(self._entries.popleft())
            if isinstance(batch[-1], _Turn | _Probe):
                break
        return batch

    async def _commit(self, groups: list[_Group]) -> dict[_Group, StorageError]:
        """Commit all groups at once or, if that fails, each for itself; the failed ones with their errors."""
        if not groups:
            return {}
        try:
            await self._write([write for group in groups for write in group.writes])
            return {}
        except StorageError as error:
            if len(groups) == 1:
                return {groups[0]: error}
        failures: dict[_Group, StorageError] = {}
        for group in groups:
            failures |= await self._commit([group])
        return failures

    async def _write(self, writes: Sequence[Write]) -> None:
        """Write, again and again while it is the ground that fails."""
        while True:
            try:
                await self._writer.write(writes)
            except CannotSave as error:
                self._stand_still(error)
                if self._hurried.is_set():
                    raise
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_S):
                        await self._hurried.wait()
            else:
                self._go_on()
                return

    def _stand_still(self, error: CannotSave) -> None:
        kind = kind_of(error)
        assert kind is not None
        if not any(known.kind == kind for known in self.health.conditions):
            _log.error("nothing can be saved: %s", error)
        self.health.report(condition(kind, self._engine.url.database or ""))
        for entry in self._entries:
            match entry:
                case _Probe(waiting) | _Turn(waiting) if not waiting.done():
                    waiting.set_exception(self._refusal())
                case _:
                    pass

    def _go_on(self) -> None:
        for known in self.health.conditions:
            if known.holds and known.kind != "damaged":
                _log.warning("saving works again after: %s", known.text)
                self.health.clear(known.kind)

    def _refusal(self) -> CannotSave:
        held = self.health.holding
        assert held is not None
        return CannotSave(f"Not saved: {held.text} {held.advice}")

    async def _probe(self, done: asyncio.Future[None]) -> None:
        """Answer who waits after the first try; then go on trying, so that the mending is noticed."""
        try:
            await self._writer.write((_PROBE,))
        except CannotSave as error:
            self._stand_still(error)
            if not done.done():
                done.set_exception(self._refusal())
            with suppress(StorageError):
                await self._write((_PROBE,))
        except StorageError as error:
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(None)

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
            case _Probe(done):
                if not done.done():
                    await self._probe(done)
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
