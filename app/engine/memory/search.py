"""Finds entries by a question: full text and vectors propose, the ranking decides."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from app.engine.core.cancel import CancelSignal
from app.engine.memory.embedding import Embedder
from app.engine.memory.index import IndexedEntry, WordHits, WordIndex, sql_condition
from app.engine.memory.index_thread import IndexThread
from app.engine.memory.question import Question, read_question
from app.engine.memory.ranking import Candidate, first_scores, neighbours_of, rank
from app.engine.memory.vectors.base import (
    VectorFilter,
    VectorsDamaged,
    VectorsError,
    VectorsMismatch,
    VectorStore,
)
from app.engine.tools.base import ToolError

NEAREST = 200
# Read and ranked. On the histories the first ten are the same with all of them, the first twenty lack 0.3 %.
_CANDIDATES = 150
# Of those that fit best by themselves, the turns beside them may hold the answer.
_WITH_NEIGHBOURS = 30


@dataclass(frozen=True, slots=True)
class Semantics:
    """What finds by meaning: a model and the vectors that it made."""

    embedder: Embedder
    vectors: VectorStore


class VectorKeeper(Protocol):
    """Keeps the vectors as the index of words wants them."""

    async def check(self) -> None:
        """Awaited before the vectors are used: they may be of another index. Raises a `VectorsError`."""
        ...

    def suspect(self) -> None:
        """A search found them damaged: they are looked at in the background, and made again."""
        ...


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

    def __init__(
        self,
        index: IndexThread,
        semantics: Semantics | None = None,
        keeper: VectorKeeper | None = None,
    ) -> None:
        self._index = index
        self._semantics = semantics
        self._keeper = keeper

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
            # What is late goes on: it loads the model, which the next search finds ready.
            looking = asyncio.create_task(
                self._nearness(self._semantics, text, where, cancel), name="search by meaning"
            )
            looking.add_done_callback(_seen)
            try:
                async with asyncio.timeout(patience_s):
                    nearness = await asyncio.shield(looking)
            except TimeoutError:
                remark = "Only words were searched: the embedding model was not ready in time."
            except (ToolError, VectorsError, OSError) as error:
                remark = f"Only words were searched. {error}"
                if self._keeper is not None and isinstance(error, VectorsDamaged | VectorsMismatch):
                    self._keeper.suspect()
        candidates = await self._index.run(partial(ranked, read_question(text), nearness, limit, where))
        return Found(candidates, nearness, remark)

    async def _nearness(
        self, semantics: Semantics, text: str, where: VectorFilter | None, cancel: CancelSignal
    ) -> Mapping[int, float]:
        if self._keeper is not None:
            await self._keeper.check()
        (vector,) = await semantics.embedder.embed((text,), cancel)
        return {hit.number: hit.score for hit in await semantics.vectors.search(vector, NEAREST, where)}


def _seen(looking: "asyncio.Task[Mapping[int, float]]") -> None:
    """An error of a search that nobody waits for any more is no defect."""
    if not looking.cancelled():
        looking.exception()


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
    """The best of what full text and vectors found, with the neighbours of the very best."""
    found = index.entries(_best(first_scores(words, nearness), _CANDIDATES))
    best = {number for scores in (words.own, nearness) for number in _best(scores, _WITH_NEIGHBOURS)}
    places = neighbours_of(one for one in found if one.entry.number in best)
    known = {one.place for one in found}
    return found + index.at_places(places - known)


def _best(scores: Mapping[int, float], amount: int) -> list[int]:
    return sorted(scores, key=lambda number: -scores[number])[:amount]
