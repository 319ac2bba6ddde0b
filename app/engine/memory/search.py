"""Finds entries by a question: full text and vectors propose, the ranking decides."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from app.engine.core.cancel import CancelSignal
from app.engine.memory.embedding import Embedder
from app.engine.memory.entries import MemoryEntry, embedded_text
from app.engine.memory.index import IndexedEntry, WordHits, WordIndex
from app.engine.memory.question import Question, read_question
from app.engine.memory.ranking import Candidate, neighbours_of, rank
from app.engine.memory.vectors.base import VectorPoint, VectorStore
from app.engine.tools.base import Vector

T = TypeVar("T")

NEAREST = 200
# Of those that fit best by themselves, the turns beside them may hold the answer.
_WITH_NEIGHBOURS = 30


@dataclass(frozen=True, slots=True)
class Semantics:
    """What finds by meaning: a model and the vectors that it made."""

    embedder: Embedder
    vectors: VectorStore


class MemorySearch:
    """Entries of one data directory. Without `semantics` full text serves alone."""

    def __init__(self, file: Path, semantics: Semantics | None = None) -> None:
        self._semantics = semantics
        # SQLite's connection belongs to one thread.
        self._thread = ThreadPoolExecutor(1, "memory")
        self._index = self._thread.submit(WordIndex, file).result()

    async def add(self, entries: Sequence[MemoryEntry], cancel: CancelSignal) -> None:
        """In order of time within each conversation."""
        await self._run(partial(self._index.add, tuple(entries)))
        if self._semantics is not None and entries:
            texts = tuple(map(embedded_text, entries))
            vectors = await self._semantics.embedder.embed(texts, cancel, background=True)
            points = [_point(entry, vector) for entry, vector in zip(entries, vectors, strict=True)]
            await self._semantics.vectors.upsert(points)

    async def find(self, text: str, limit: int, cancel: CancelSignal) -> tuple[Candidate, ...]:
        """The best, best first."""
        nearness = await self._nearness(text, cancel)
        return await self._run(partial(self._ranked, read_question(text), nearness, limit))

    async def close(self) -> None:
        await self._run(self._index.close)
        self._thread.shutdown()

    async def _nearness(self, text: str, cancel: CancelSignal) -> Mapping[int, float]:
        if self._semantics is None:
            return {}
        (vector,) = await self._semantics.embedder.embed((text,), cancel)
        return {hit.number: hit.score for hit in await self._semantics.vectors.search(vector, NEAREST)}

    def _ranked(self, question: Question, nearness: Mapping[int, float], limit: int) -> tuple[Candidate, ...]:
        words = self._index.hits(question.words)
        return tuple(rank(question, proposed(self._index, words, nearness), words, nearness)[:limit])

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)


def proposed(index: WordIndex, words: WordHits, nearness: Mapping[int, float]) -> list[IndexedEntry]:
    """What full text and vectors found, with the neighbours of the best."""
    found = index.entries({*words.own, *words.window, *nearness})
    best = {number for scores in (words.own, nearness) for number in _best(scores, _WITH_NEIGHBOURS)}
    places = neighbours_of(one for one in found if one.entry.number in best)
    known = {(one.entry.conversation_id, one.position) for one in found}
    return found + index.at_places(places - known)


def _point(entry: MemoryEntry, vector: Vector) -> VectorPoint:
    at = entry.at.timestamp()
    return VectorPoint(entry.number, vector, entry.conversation_id, entry.folder, entry.role, at)


def _best(scores: Mapping[int, float], amount: int) -> list[int]:
    return sorted(scores, key=lambda number: -scores[number])[:amount]
