"""The journal: the single queue of all changes, committed in groups."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, assert_never

from sqlalchemy.exc import SQLAlchemyError

from errand.engine.core.errors import Busy, CannotSave, StorageError
from errand.engine.core.resources import Health
from errand.engine.storage.sql.async_engine import AsyncConnection, AsyncEngine
from errand.engine.storage.sql.errors import condition, name_of, save_error_of
from errand.engine.storage.sql.statements import Write, upsert
from errand.engine.storage.sql.tables import meta
from errand.engine.storage.sql.writer import Writer

T = TypeVar("T")

_log = logging.getLogger(__name__)

# Maximum number of groups in one transaction: keeps commits short when the queue is long.
_BATCH = 1000
# Changes without a waiting flush are held back this long, to share its commit: a reply waits here for the intent of its
# call. A non-durable commit waits as long for a durable one: both then cost one disk flush.
_GATHER_S = 0.02
# Retry interval while nothing can be saved.
_RETRY_S = 1.0
_PROBE = upsert(meta, ["name"], ["value"])


class _Owner:
    """The owner of changes: a failure is reported only to the owner of the failed change."""

    __slots__ = ("failure",)

    def __init__(self) -> None:
        self.failure: StorageError | None = None


_owner: ContextVar[_Owner | None] = ContextVar("owner of changes", default=None)


def begin_ownership() -> None:
    """Let this asyncio task and those it starts own their changes: failures are not reported to others."""
    _owner.set(_Owner())


class JournalChange:
    """A queued group of writes, committed atomically. Another group may depend on it."""

    __slots__ = ("after", "failure", "on_commit", "owner", "writes")

    def __init__(
        self,
        writes: tuple[Write, ...],
        owner: _Owner,
        after: "JournalChange | None",
        on_commit: Callable[[], None] | None,
    ) -> None:
        self.writes = writes
        self.on_commit = on_commit
        self.owner = owner
        self.after = after
        self.failure: StorageError | None = None


@dataclass(frozen=True, slots=True)
class _FlushMarker:
    """A flush that waits for everything before it."""

    done: asyncio.Future[None]
    owner: _Owner
    durable: bool


@dataclass(frozen=True, slots=True)
class _ExclusiveTurn:
    """An exclusive transaction: the queue is blocked from `granted` to `finished`."""

    granted: asyncio.Future[None]
    finished: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class _Probe:
    """An empty change, to test whether changes can be saved."""

    done: asyncio.Future[None]


_Entry: TypeAlias = JournalChange | _FlushMarker | _ExclusiveTurn | _Probe


class Journal:
    """All changes of the database go through this queue, in order.

    With `set_waits_saved`, environment failures (a full disk, a lock) do not lose changes: the journal retries until
    they are saved, and flushes wait. Without it, such a change is lost and fails the flush.

    A change that the database rejects fails alone, with those put to come `after` it. This is reported to its owner
    (see `begin_ownership`); changes of other owners are committed in order.
    """

    def __init__(self, writer: Writer, engine: AsyncEngine, limit: int = 100_000) -> None:
        self._writer = writer
        self._engine = engine
        self.health = Health()
        self._limit = limit
        self._entries: deque[_Entry] = deque()
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._due_at: float | None = None
        self._batch: list[_Entry] = []
        self._closing = False
        self._is_behind = False
        self._default_owner = _Owner()
        self._fails_fast = asyncio.Event()
        self._fails_fast.set()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run(), name="storage journal")
        self._task.add_done_callback(self._on_end)

    def put(
        self, *writes: Write, after: JournalChange | None = None, on_commit: Callable[[], None] | None = None
    ) -> JournalChange:
        """Queue one group, committed atomically, without waiting. Raises `Busy` if the queue is full.

        `on_commit` is called on the event loop after the commit, in the order of the groups. A failed group is logged,
        and fails its owner's next flush and all groups put `after` it.
        """
        if len(self._entries) >= self._limit:
            raise Busy(f"{self._limit:,} changes wait to be saved: the disk does not keep up. Try again shortly.")
        change = JournalChange(writes, self._current_owner(), after, on_commit)
        self._add(change)
        return change

    async def flush(self, *, durable: bool = True) -> None:
        """Return once everything put so far is committed and on disk, where it survives a power failure.

        If not `durable`, it survives only a crash of the engine, and is on disk a moment later. Raises the first
        `StorageError` of the caller's changes since its previous flush.
        """
        mark = _FlushMarker(self._loop.create_future(), self._current_owner(), durable)
        self._add(mark)
        await mark.done

    @property
    def is_busy(self) -> bool:
        """True if changes or callers wait."""
        return bool(self._entries)

    def set_waits_saved(self, waits: bool) -> None:
        """Wait until changes can be saved from now on. If not, for a shutdown: retry once, then drop them."""
        if waits:
            self._fails_fast.clear()
        else:
            self._fails_fast.set()

    async def probe(self) -> None:
        """Test whether a change can be saved now. Raises `CannotSave`, with advice, if not."""
        if self.health.blocking_condition is None:
            probe = _Probe(self._loop.create_future())
            self._add(probe)
            await probe.done
        else:
            raise self._refusal()

    def suspect(self) -> None:
        """Find out, without waiting for it, whether changes can be saved now: `health` tells."""
        if self.health.blocking_condition is None and not self._closing:
            probe = _Probe(self._loop.create_future())
            probe.done.add_done_callback(lambda done: done.exception())  # known to `health`
            self._add(probe)

    async def transact(self, work: Callable[[AsyncConnection], Awaitable[T]], *, durable: bool = True) -> T:
        """Read, decide and write in one exclusive transaction, in queue order; an error in `work` rolls it back.

        The journal is blocked meanwhile: `work` must not wait for a flush. If not `durable`, the transaction is on
        disk only with the next durable commit. Raises `CannotSave` at once while saving fails.
        """

        async def in_transaction() -> T:
            result = await self._transact(work, durable=durable)
            self._is_behind = self._is_behind or not durable
            return result

        return await self.while_idle(in_transaction)

    async def while_idle(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work`, in queue order, while nothing else is written; it must not wait for a flush.

        Raises `CannotSave` at once while saving fails.
        """
        if self.health.blocking_condition is not None:
            raise self._refusal()
        turn = _ExclusiveTurn(self._loop.create_future(), self._loop.create_future())
        self._add(turn)
        try:
            await turn.granted
            return await work()
        finally:
            turn.finished.set_result(None)

    async def close(self) -> None:
        """Commit queued changes, then close all connections: those that read first, so that the writer's is the last.

        Later changes are refused; a second call only waits.
        """
        first = not self._closing
        self._closing = True
        self._fails_fast.set()
        self._wake.set()
        await asyncio.shield(self._task)
        if first:
            await self._engine.dispose()
            await self._writer.close()

    def _current_owner(self) -> _Owner:
        return _owner.get() or self._default_owner

    def _add(self, entry: _Entry) -> None:
        if self._closing:
            raise StorageError("The database is closed; the change was not saved.")
        self._entries.append(entry)
        if not isinstance(entry, JournalChange) or len(self._entries) >= _BATCH:
            self._wake.set()
        else:
            self._wake_later()

    def _wake_later(self) -> None:
        if self._due_at is None:
            self._due_at = self._loop.time() + _GATHER_S
        if self._timer is None:
            self._timer = self._loop.call_at(self._due_at, self._on_timer)

    def _on_timer(self) -> None:
        """The timer outlives what it was started for: a step commits several times within it."""
        self._timer = None
        if self._due_at is None:
            return
        if self._loop.time() < self._due_at:
            self._timer = self._loop.call_at(self._due_at, self._on_timer)
        else:
            self._wake.set()

    async def _run(self) -> None:
        """Each round commits a batch, or flushes to disk what was committed before without being durable."""
        while self._entries or not self._closing:
            await self._wake.wait()
            self._due_at = None
            self._batch = self._take()
            if self._batch:
                await self._commit(self._batch)
                await self._complete(self._batch)
                self._batch = []
                if self._is_behind:
                    self._wake_later()
            elif self._is_behind:
                await self._flush_to_disk()
        if self._is_behind:
            await self._flush_to_disk()

    def _on_end(self, task: "asyncio.Task[None]") -> None:
        """Ends early only by a defect, or with its event loop: fails all waiters, which otherwise wait forever."""
        error = asyncio.CancelledError("cancelled") if task.cancelled() else task.exception()
        if error is None:
            return
        _log.critical("the journal ended by an error", exc_info=error)
        self._closing = True
        for entry in (*self._batch, *self._entries):
            match entry:
                case _FlushMarker(waiting) | _Probe(waiting) | _ExclusiveTurn(waiting) if not waiting.done():
                    waiting.set_exception(StorageError(f"Nothing can be saved any more ({error!r}). Restart Errand."))
                case _:
                    pass

    def _take(self) -> list[_Entry]:
        """Return the next batch; a turn or a probe is always its last entry."""
        batch: list[_Entry] = []
        while self._entries and len(batch) < _BATCH:
            batch.append(self._entries.popleft())
            if isinstance(batch[-1], (_ExclusiveTurn, _Probe)):
                break
        if not self._entries and not self._closing:
            self._wake.clear()
        return batch

    async def _commit(self, batch: Sequence[_Entry]) -> None:
        marks = [entry.durable for entry in batch if isinstance(entry, _FlushMarker)]
        durable = any(marks) or not marks
        await self._save([entry for entry in batch if isinstance(entry, JournalChange)], durable=durable)
        if durable and marks and self._is_behind:
            await self._flush_to_disk()

    async def _save(self, changes: Sequence[JournalChange], *, durable: bool) -> None:
        """Commit all at once; if a change is rejected, split into halves until only that change fails."""
        changes = [change for change in changes if not _has_failed(change)]
        if not changes:
            return
        try:
            await self._write([write for change in changes for write in change.writes], durable=durable)
        except CannotSave as error:
            for change in changes:
                change.failure = error
        except StorageError as error:
            if len(changes) == 1:
                changes[0].failure = error
                return
            half = len(changes) // 2
            await self._save(changes[:half], durable=durable)
            await self._save(changes[half:], durable=durable)

    async def _flush_to_disk(self) -> None:
        """Flush earlier commits to disk."""
        try:
            await self._write((_empty_change(),), durable=True)
        except StorageError as error:
            self._is_behind = False  # prevents 50 retries per second; the next durable commit flushes too
            _log.error("what is committed may not outlive a power cut: %s", error)

    async def _write(self, writes: Sequence[Write], *, durable: bool) -> None:
        """Write, and retry while the environment fails."""
        while True:
            try:
                await self._writer.write(writes, durable=durable)
            except CannotSave as error:
                self._report_trouble(error)
                if self._fails_fast.is_set():
                    raise
                with suppress(TimeoutError):
                    async with asyncio.timeout(_RETRY_S):
                        await self._fails_fast.wait()
            else:
                self._is_behind = not durable
                self._clear_trouble()
                return

    def _report_trouble(self, error: CannotSave) -> None:
        assert error.kind is not None
        if not any(open_condition.kind == error.kind for open_condition in self.health.conditions):
            _log.error("nothing can be saved: %s", error)
        self.health.report(condition(error.kind, name_of(self._engine)))
        for entry in (*self._batch, *self._entries):
            match entry:
                case _Probe(waiting) | _ExclusiveTurn(waiting) if not waiting.done():
                    waiting.set_exception(self._refusal())
                case _:
                    pass

    def _clear_trouble(self) -> None:
        for open_condition in self.health.conditions:
            if open_condition.holds and open_condition.kind != "damaged":
                _log.warning("saving works again after: %s", open_condition.text)
                self.health.clear(open_condition.kind)

    def _refusal(self) -> CannotSave:
        held = self.health.blocking_condition
        assert held is not None
        return CannotSave(f"Not saved: {held.text} {held.advice}")

    async def _probe(self, done: asyncio.Future[None]) -> None:
        """Report the first attempt to the waiter; then keep trying, to notice when saving works again."""
        try:
            await self._writer.write((_empty_change(),), durable=False)
        except CannotSave as error:
            self._report_trouble(error)
            if not done.done():
                done.set_exception(self._refusal())
            with suppress(StorageError):
                await self._write((_empty_change(),), durable=True)
        except StorageError as error:
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(None)

    async def _complete(self, batch: Sequence[_Entry]) -> None:
        for entry in batch:
            match entry:
                case JournalChange():
                    self._announce(entry)
                case _FlushMarker():
                    _resolve(entry)
                    if entry is not batch[-1]:
                        # Lets each waiter run in a separate loop iteration: fifty in one would block all others.
                        await asyncio.sleep(0)
                case _Probe(done):
                    if not done.done():
                        await self._probe(done)
                case _ExclusiveTurn(granted, over):
                    if not granted.done():
                        granted.set_result(None)
                        await over
                case _:
                    assert_never(entry)

    async def _transact(self, work: Callable[[AsyncConnection], Awaitable[T]], *, durable: bool) -> T:
        try:
            async with self._engine.begin() as connection:
                await self._writer.begin(connection, durable=durable)
                return await work(connection)
        except (SQLAlchemyError, OSError) as error:
            raise save_error_of(error) from error

    def _announce(self, change: JournalChange) -> None:
        if change.failure is not None:
            change.owner.failure = change.owner.failure or change.failure
            tables = ", ".join(dict.fromkeys(str(write.statement.table) for write in change.writes))
            _log.error("a change of %s was lost: %s", tables, change.failure)
        elif change.on_commit is not None:
            # Through the loop: a callback's exception goes to the loop's handler, not into the journal.
            self._loop.call_soon(change.on_commit)
        change.after = None  # frees the chain of earlier changes


def _empty_change() -> Write:
    """Return a write of a new value each time: SQLite neither writes nor flushes an unchanged row."""
    return Write(_PROBE, {"name": "probe", "value": str(time.time_ns())})


def _has_failed(change: JournalChange) -> bool:
    """Return True if a change it depends on has failed."""
    if change.after is not None and change.after.failure is not None:
        change.failure = change.after.failure
    return change.failure is not None


def _resolve(mark: _FlushMarker) -> None:
    if mark.done.done():
        return  # its flush was cancelled; the owner's next flush reports the failure
    failure, mark.owner.failure = mark.owner.failure, None
    if failure is None:
        mark.done.set_result(None)
    else:
        mark.done.set_exception(failure)
