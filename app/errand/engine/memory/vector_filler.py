"""Makes the vectors of entries in the background, the newest first, and removes those that are not wanted."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path

from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ModelKind
from errand.engine.memory.index import IndexedEntry, WordIndex
from errand.engine.memory.index_thread import IndexThread, IndexUnavailable
from errand.engine.memory.passages import count_passages, embed_entries, vectors_of
from errand.engine.memory.search import Semantics
from errand.engine.memory.vector_states import (
    removed_note,
    set_states,
    states,
    waiting_entries,
    want_all,
    withdraw_removed,
)
from errand.engine.memory.vectors.base import (
    VectorPoint,
    VectorsDamaged,
    VectorsError,
    VectorsMismatch,
    VectorStore,
    has_direction,
)
from errand.engine.tools.results import ToolError

_logger = logging.getLogger(__name__)

# Passages that are embedded before they are stored: about five seconds of work.
_PASSAGES = 64
# A failed attempt is repeated after this time, or when the state of the model changes.
_RETRY_AFTER_S = 60.0
# The store of vectors is optimised when it has this many new ones.
_MANY = 2_000
# Purging takes seconds of a core with 100,000 vectors: so many times as long as it took, it rests.
_PURGE_REST = 4.0


class VectorFiller:
    """The filler of the vectors. While `is_busy`, tasks get the processor.

    `semantics` has the vectors of `kind`. They are made anew by the best model that is there when another comes, or
    when theirs goes and one is left.
    """

    def __init__(self, index: IndexThread, semantics: Semantics, kind: ModelKind, is_busy: Callable[[], bool]) -> None:
        self.problem = ""
        # True while more entries wait for vectors than are embedded at once.
        self.is_behind = False
        self._index = index
        self._embedder: Embedder = semantics.embedder
        self._vectors: VectorStore = semantics.vectors
        self._kind = kind
        self._is_busy = is_busy
        self._wake = asyncio.Event()
        self._unwanted: list[int] = []
        # Those that the store has deleted, whose vectors may still be on the disk.
        self._deleted = 0
        self._purges_from = 0.0
        self._all_removed = asyncio.Event()
        self._note = index.file.with_name("vectors.of")
        self._checking = asyncio.Lock()
        self._checked = ""
        self._checked_in = -1
        self._is_suspect = False
        self._new = 0

    def wake(self) -> None:
        self._wake.set()

    def suspect(self) -> None:
        """Check the store soon: a search found it damaged."""
        self._checked = ""
        self._is_suspect = True
        self._wake.set()

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove these vectors soon, and again after a restart if they are still there."""
        self._unwanted += numbers
        self._wake.set()

    @property
    def to_remove(self) -> int:
        """The number of entries that were removed or pruned, whose vectors may still be on the disk."""
        return len(self._unwanted) + self._deleted

    async def count_to_remove(self) -> int:
        """Return `to_remove`; 1 if it is not known yet after a restart. Raises `IndexUnavailable`."""
        if self.to_remove:
            return self.to_remove
        return int(bool(await self._index.run(removed_note)) or await self._vectors.has_remains())

    async def wait_removed(self, limit_s: float) -> int:
        """Wait until no such vector is on the disk any more, at most this long; returns how many may still be."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self.to_remove and not self.problem:
                    self._all_removed.clear()
                    await self._all_removed.wait()
        return self.to_remove

    async def run(self) -> None:
        """Fill the store until it is cancelled."""
        began_again = -_RETRY_AFTER_S
        while True:
            self._wake.clear()
            try:
                await self._work()
                self.problem = ""
            except (VectorsDamaged, VectorsMismatch) as error:
                _logger.warning("the vectors of memory are made again: %s", error)
                if time.monotonic() - began_again < _RETRY_AFTER_S:  # it did not help
                    self.problem = str(error)
                    await asyncio.sleep(_RETRY_AFTER_S)
                began_again = time.monotonic()
                await self._start_again()
                continue
            except (ToolError, VectorsError, IndexUnavailable, OSError) as error:
                self.problem = str(error)
                self._all_removed.set()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._rest_s())

    def _rest_s(self) -> float | None:
        """Return how long to wait for new work; None for as long as it takes."""
        if self.problem:
            return _RETRY_AFTER_S
        return max(0.0, self._purges_from - time.monotonic()) if self._deleted else None

    async def _work(self) -> None:
        await self._remove_unwanted()
        await self._purge()
        if self._is_suspect:
            self._is_suspect = False
            await self.check()
        if self._embedder.kind not in (self._kind, None):
            await self.check()
        identity, entries = await self._index.run(partial(waiting_entries, _PASSAGES))
        while entries and self._embedder.kind is not None:
            self.is_behind = len(entries) == _PASSAGES
            kind = await self.check()
            self._embedder.throttled = self._is_busy()
            chosen = [indexed.entry for indexed in _first(entries)]
            points = await embed_entries(chosen, self._embedder, kind, background=True)
            await self._store(identity, kind, [entry.number for entry in chosen], points)
            await self._remove_unwanted()
            await self._purge()
            identity, entries = await self._index.run(partial(waiting_entries, _PASSAGES))
        self.is_behind = bool(entries) and self._embedder.kind is not None
        if self._new >= _MANY:
            await self._vectors.optimise()
            self._new = 0

    async def _store(
        self, identity: str, kind: ModelKind, numbers: Sequence[int], points: Sequence[VectorPoint]
    ) -> None:
        """Store complete entries: an entry that is noted as made has all its vectors."""
        failed = {point.number for point in points if not has_direction(point.vector)}
        usable = [number for number in numbers if number not in failed]
        async with self._checking:
            # The index was made anew meanwhile, so that these numbers mean others now; or it is of another model.
            if identity != self._checked or kind != self._kind:
                return
            await self._vectors.upsert([point for point in points if point.number not in failed])
            noted = await self._index.run(partial(set_states, identity, usable, "made"))
            self._unwanted += [number for number in usable if number not in noted]  # forgotten or pruned meanwhile
            if failed:
                _logger.warning("the model made no vector that can be used of the entries %s", sorted(failed))
                await self._index.run(partial(set_states, identity, sorted(failed), "failed"))
        self._new += len(points)

    async def _remove_unwanted(self) -> None:
        if not await asyncio.to_thread(_read, self._note) and not await self._vectors.has_remains():
            self._unwanted.clear()  # there never was a vector
            if note := await self._index.run(removed_note):
                await self._withdraw(note)
            return
        note = await self._index.run(removed_note)
        if self._unwanted or note or await self._vectors.has_remains():
            await self.check()  # which may find more
        if numbers := tuple(self._unwanted):
            await self._vectors.delete(numbers)
            self._deleted += len(numbers)
            del self._unwanted[: len(numbers)]
        if note:
            await self._withdraw(note)

    async def _withdraw(self, note: str) -> None:
        if not self._unwanted:  # from here on the store itself knows whether something remains
            await self._index.run(partial(withdraw_removed, note))

    async def _purge(self) -> None:
        """Remove what was deleted from the disk, and tell those who wait for it."""
        began = time.monotonic()
        if began < self._purges_from:
            return
        if await self._vectors.has_remains():
            deleted = self._deleted
            await self._vectors.purge()
            self._purges_from = time.monotonic() + _PURGE_REST * (time.monotonic() - began)
            self._deleted -= deleted
        else:
            self._deleted = 0
        if not self.to_remove:
            self._all_removed.set()

    async def check(self) -> ModelKind:
        """Make the store agree with the index, once for each index: before that its numbers mean nothing.

        A killed engine may have left them different; an index that was made anew numbers its entries anew, and another
        model makes its vectors anew. Returns of which model they are. Raises a `VectorsError`, and `IndexUnavailable`.
        """
        async with self._checking:
            await self._follow_model()
            await self._check_index()
            return self._kind

    async def _follow_model(self) -> None:
        kind = self._embedder.kind or self._kind
        if kind == self._kind:
            return
        self._checked = ""  # compared again if this fails
        await self._vectors.use(kind.dimensions, vectors_of(kind))
        self._kind = kind
        identity = await self._index.run(WordIndex.identity)
        await self._begin(identity)
        self._checked, self._checked_in = identity, self._index.generation
        self.wake()

    async def _check_index(self) -> None:
        generation = self._index.generation
        if self._checked and self._checked_in == generation:  # the index thread is busy with the same search
            return
        identity = await self._index.run(WordIndex.identity)
        if identity == self._checked:
            self._checked_in = generation
            return
        if await asyncio.to_thread(_read, self._note) != identity:
            await self._begin(identity)
        else:
            await self._compare(identity)
        self._checked, self._checked_in = identity, generation

    async def _compare(self, identity: str) -> None:
        stored = await self._vectors.numbers()
        noted = await self._index.run(states)
        # One that is wanted is replaced: it may have been stored just before the engine was killed.
        self._unwanted += [number for number in stored if noted.get(number, "pruned") == "pruned"]
        lost = [number for number, state in noted.items() if state == "made" and number not in stored]
        if lost:
            await self._index.run(partial(set_states, identity, lost, "wanted"))

    async def _begin(self, identity: str) -> None:
        """Begin with an empty store. The note is written last: a killed engine begins once more."""
        await self._vectors.clear()
        self._unwanted.clear()
        self._deleted = 0
        await self._index.run(want_all)
        await asyncio.to_thread(self._note.write_text, identity)

    async def _start_again(self) -> None:
        try:
            async with self._checking:
                identity = await self._index.run(WordIndex.identity)
                await self._begin(identity)
                self._checked = identity
            self.problem = ""
        except (VectorsError, IndexUnavailable, OSError) as error:
            self.problem = str(error)
            await asyncio.sleep(_RETRY_AFTER_S)


def _first(entries: Sequence[IndexedEntry]) -> Sequence[IndexedEntry]:
    """Return the first entries, as many as are embedded at once, at least one."""
    sums = accumulate(count_passages(indexed.entry.text) for indexed in entries)
    return entries[: max(1, sum(total <= _PASSAGES for total in sums))]


def _read(note: Path) -> str:
    """Return the index that the vectors belong to; empty if there is no note."""
    try:
        return note.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
