"""Finds entries by a question: full text and vectors propose, the ranking decides."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from app.engine.core.cancel import CancelSignal
from app.engine.memory.embedding import Embedder
from app.engine.memory.entries import MemoryEntry
from app.engine.memory.index import IndexedEntry, WordHits, WordIndex, sql_condition
from app.engine.memory.index_thread import IndexThread
from app.engine.memory.question import Question, read_question
from app.engine.memory.ranking import Candidate, neighbours_of, rank
from app.engine.memory.vectors.base import VectorFilter, VectorPoint, VectorsError, VectorStore
from app.engine.tools.base import ToolError, Vector

NEAREST = 200
# Of those that fit best by themselves, the turns beside them may hold the answer.
_WITH_NEIGHBOURS = 30


@dataclass(frozen=True, slots=True)
class Semantics:
    """What finds by meaning: a model and the vectors that it made."""

    embedder: Embedder
    vectors: VectorStore


@dataclass(frozen=True, slots=True)
class Found:
    """Best first, with the cosines of the nearest by their numbers.

    `remark` says why meanings were not searched; empty if they were.
    """

    candidates: tuple[Candidate, ...]
    nearness: Mapping[int, float]
    remark: str = ""


class MemorySearch:
    """Without `semantics`, or while these do not work, full text serves alone."""

    def __init__(self, index: IndexThread, semantics: Semantics | None = None) -> None:
        self._index = index
        self._semantics = semantics

    async def find(
        self,
        text: str,
        limit: int,
        cancel: CancelSignal,
        where: VectorFilter | None = None,
        patience_s: float | None = None,
    ) -> Found:
        """The best entries. After `patience_s` it does without meanings. Raises `IndexUnavailable`."""
        nearness: Mapping[int, float] = {}
        remark = ""
        if self._semantics is not None:
            try:
                async with asyncio.timeout(patience_s):
                    nearness = await _nearness(self._semantics, text, where, cancel)
            except (ToolError, VectorsError) as error:
                remark = str(error)
            except TimeoutError:
                remark = "The embedding model was not ready in time."
        candidates = await self._index.run(partial(ranked, read_question(text), nearness, limit, where))
        return Found(candidates, nearness, remark)


def point_of(entry: MemoryEntry, vector: Vector) -> VectorPoint:
    at = entry.at.timestamp()
    return VectorPoint(entry.number, vector, entry.conversation_id, entry.folder, entry.role, at)


async def _nearness(
    semantics: Semantics, text: str, where: VectorFilter | None, cancel: CancelSignal
) -> Mapping[int, float]:
    (vector,) = await semantics.embedder.embed((text,), cancel)
    return {hit.number: hit.score for hit in await semantics.vectors.search(vector, NEAREST, where)}


def ranked(
    question: Question, nearness: Mapping[int, float], limit: int, where: VectorFilter | None, index: WordIndex
) -> tuple[Candidate, ...]:
    words = index.hits(question.words, where)
    candidates = rank(question, proposed(index, words, nearness), words, nearness)
    allowed = _allowed(index, where, candidates)
    return tuple(one for one in candidates if allowed is None or one.found.entry.number in allowed)[:limit]


def _allowed(index: WordIndex, where: VectorFilter | None, candidates: list[Candidate]) -> frozenset[int] | None:
    """The numbers that the filter lets through, of neighbours too; None without a filter."""
    condition, values = sql_condition(where)
    if not condition:
        return None
    numbers = [one.found.entry.number for one in candidates]
    return frozenset(one.entry.number for one in index.entries(numbers, condition, values))


def proposed(index: WordIndex, words: WordHits, nearness: Mapping[int, float]) -> list[IndexedEntry]:
    """What full text and vectors found, with the neighbours of the best."""
    found = index.entries({*words.own, *words.window, *nearness})
    best = {number for scores in (words.own, nearness) for number in _best(scores, _WITH_NEIGHBOURS)}
    places = neighbours_of(one for one in found if one.entry.number in best)
    known = {one.place for one in found}
    return found + index.at_places(places - known)


def _best(scores: Mapping[int, float], amount: int) -> list[int]:
    return sorted(scores, key=lambda number: -scores[number])[:amount]
