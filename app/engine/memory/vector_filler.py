"""Makes the vectors of entries in the background, the newest first, and removes those that are not wanted."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from app.engine.core.cancel import CancelSignal
from app.engine.memory.embedding import Embedder
from app.engine.memory.entries import embedded_text
from app.engine.memory.index import IndexedEntry, Transaction, VectorState, WordIndex
from app.engine.memory.index_thread import IndexThread, IndexUnavailable
from app.engine.memory.search import Semantics, point_of
from app.engine.memory.vectors.base import VectorsDamaged, VectorsError, VectorsMismatch, VectorStore
from app.engine.tools.base import ToolError, Vector

_logger = logging.getLogger(__name__)

_ENTRIES = 64
# What cannot be done now is tried again after this time, or when the state of the model changes.
_AGAIN_S = 60.0
# A store of vectors is made fast again when so many are new.
_MANY = 2_000


class VectorFiller:
    """`is_ready` says whether there is a model, `is_busy` that tasks run: then the processor is left to them."""

    def __init__(
        self, index: IndexThread, semantics: Semantics, is_ready: Callable[[], bool], is_busy: Callable[[], bool]
    ) -> None:
        self.problem = ""
        self._index = index
        self._embedder: Embedder = semantics.embedder
        self._vectors: VectorStore = semantics.vectors
        self._is_ready = is_ready
        self._is_busy = is_busy
        self._wake = asyncio.Event()
        self._unwanted: list[int] = []
        self._note = index.file.with_name("vectors.of")
        self._checking = asyncio.Lock()
        self._checked = ""
        self._is_suspect = False
        self._new = 0

    def wake(self) -> None:
        self._wake.set()

    def suspect(self) -> None:
        """A search found the store damaged: look at it soon."""
        self._checked = ""
        self._is_suspect = True
        self._wake.set()

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove these vectors soon, and again after a restart if they are still there."""
        self._unwanted += numbers
        self._wake.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self._wake.clear()
            try:
                await self._work()
                self.problem = ""
            except (VectorsDamaged, VectorsMismatch) as error:
                _logger.warning("the vectors of memory are made again: %s", error)
                await self._start_again()
                continue
            except (ToolError, VectorsError, IndexUnavailable, OSError) as error:
                self.problem = str(error)
            try:
                await asyncio.wait_for(self._wake.wait(), _AGAIN_S if self.problem else None)
            except TimeoutError:
                continue

    async def _work(self) -> None:
        if not self._is_ready():
            return
        if self._is_suspect:
            self._is_suspect = False
            await self.check()
        while entries := await self._index.run(_wanted):
            await self.check()
            self._embedder.throttled = self._is_busy()
            texts = tuple(embedded_text(one.entry) for one in entries)
            vectors = await self._embedder.embed(texts, CancelSignal(), background=True)
            await self._store(entries, vectors)
            await self._remove_unwanted()
        await self._remove_unwanted()
        if self._new >= _MANY:
            await self._vectors.optimise()
            self._new = 0

    async def _store(self, entries: Sequence[IndexedEntry], vectors: Sequence[Vector]) -> None:
        points = [point_of(one.entry, vector) for one, vector in zip(entries, vectors, strict=True)]
        await self._vectors.upsert(points)
        numbers = [one.entry.number for one in entries]
        left = await self._index.run(partial(set_vectors, numbers, "made"))
        self._unwanted += [number for number in numbers if number not in left]  # forgotten meanwhile
        self._new += len(numbers)

    async def _remove_unwanted(self) -> None:
        if self._unwanted:
            await self.check()  # which may find more
        if numbers := tuple(self._unwanted):
            await self._vectors.delete(numbers)
            del self._unwanted[: len(numbers)]

    async def check(self) -> None:
        """Make the store agree with the index, once for each index: before that its numbers mean nothing.

        A killed engine may have left them different; an index that was made anew numbers its entries anew. Raises a
        `VectorsError`, and `IndexUnavailable`.
        """
        async with self._checking:
            identity = await self._index.run(WordIndex.identity)
            if identity == self._checked:
                return
            if await asyncio.to_thread(_read, self._note) != identity:
                await self._begin(identity)
            else:
                await self._compare()
            self._checked = identity

    async def _compare(self) -> None:
        stored = await self._vectors.numbers()
        noted = await self._index.run(_made)
        self._unwanted += [number for number in stored if number not in noted]
        lost = [number for number in noted if number not in stored]
        if lost:
            await self._index.run(partial(set_vectors, lost, "wanted"))

    async def _begin(self, identity: str) -> None:
        """With an empty store. The note comes last: a killed engine begins once more."""
        self._unwanted.clear()
        await self._vectors.clear()
        await self._index.run(_want_all)
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
            await asyncio.sleep(_AGAIN_S)


def _read(note: Path) -> str:
    """The index that the vectors belong to; empty if there is no note."""
    try:
        return note.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def set_vectors(numbers: Sequence[int], state: VectorState, index: WordIndex) -> frozenset[int]:
    """Note the state of these entries' vectors; returns the numbers that have an entry."""
    left: set[int] = set()
    with Transaction(index.connection):
        for number in numbers:
            changed = index.connection.execute("UPDATE entries SET vector = ? WHERE number = ?", (state, number))
            if changed.rowcount:
                left.add(number)
    return frozenset(left)


def _wanted(index: WordIndex) -> list[IndexedEntry]:
    return index.select("vector = 'wanted' ORDER BY number DESC LIMIT ?", (_ENTRIES,))


def _made(index: WordIndex) -> frozenset[int]:
    rows = index.connection.execute("SELECT number FROM entries WHERE vector = 'made'")
    return frozenset(row[0] for row in rows)


def _want_all(index: WordIndex) -> None:
    index.connection.execute("UPDATE entries SET vector = 'wanted' WHERE vector = 'made'")
