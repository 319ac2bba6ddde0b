"""Finds entries by a question: full text and vectors propose, the ranking decides."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.index import EntryHead, WordIndex
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.question import Question
from errand.engine.memory.ranking import READ, Candidate, first_scores, rank
from errand.engine.memory.vectors.base import (
    VectorFilter,
    VectorHit,
    VectorsDamaged,
    VectorsError,
    VectorsMismatch,
    VectorStore,
)
from errand.engine.memory.word_hits import WordHits, word_hits
from errand.engine.tools.base import ToolError

# Cosines by the numbers of the nearest entries.
Nearness: TypeAlias = Mapping[int, float]
_Nearest: TypeAlias = tuple[VectorHit, ...]

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
    """Best first, with the cosines of the nearest by their numbers, and which of their passages these are of.

    `remark` says why meanings were not searched; empty if they were.
    """

    candidates: tuple[Candidate, ...]
    nearness: Nearness
    passages: Mapping[int, int]
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
        question: Question,
        limit: int,
        cancel: CancelSignal,
        where: VectorFilter | None = None,
        *,
        by_meaning: bool = True,
        patience_s: float | None = None,
    ) -> Found:
        """The best entries. After `patience_s` it does without meanings. Raises `IndexUnavailable`."""
        looking = self._begin(question.text, where, cancel) if by_meaning else None
        words = await self._index.read(lambda index: word_hits(question.words, index, where))
        nearest, remark = await self._outcome(looking, patience_s) if looking is not None else ((), "")
        nearness = {hit.number: hit.score for hit in nearest}
        candidates = await self._index.read(partial(ranked, question, words, nearness, limit, where))
        return Found(candidates, nearness, {hit.number: hit.part for hit in nearest}, remark)

    def _begin(self, text: str, where: VectorFilter | None, cancel: CancelSignal) -> "asyncio.Task[_Nearest] | None":
        """What is late goes on: it loads the model, which the next search finds ready."""
        if self._semantics is None:
            return None
        looking = asyncio.create_task(self._nearest(self._semantics, text, where, cancel), name="search by meaning")
        looking.add_done_callback(_seen)
        return looking

    async def _outcome(self, looking: "asyncio.Task[_Nearest]", patience_s: float | None) -> tuple[_Nearest, str]:
        """With a remark if there is none."""
        try:
            async with asyncio.timeout(patience_s):
                return await asyncio.shield(looking), ""
        except TimeoutError:
            return (), "Only words were searched: the embedding model was not ready in time."
        except (ToolError, VectorsError, OSError) as error:
            if self._keeper is not None and isinstance(error, VectorsDamaged | VectorsMismatch):
                self._keeper.suspect()
            return (), f"Only words were searched. {error}"

    async def _nearest(
        self, semantics: Semantics, text: str, where: VectorFilter | None, cancel: CancelSignal
    ) -> _Nearest:
        if self._keeper is not None:
            await self._keeper.check()
        (vector,) = await semantics.embedder.embed((text,), cancel)
        return await semantics.vectors.search(vector, NEAREST, where)


def _seen(looking: "asyncio.Task[_Nearest]") -> None:
    """An error of a search that nobody waits for any more is no defect."""
    if not looking.cancelled():
        looking.exception()


def ranked(
    question: Question,
    words: WordHits,
    nearness: Nearness,
    limit: int,
    where: VectorFilter | None,
    index: WordIndex,
) -> tuple[Candidate, ...]:
    heads = proposed(index, words, nearness, where)
    return tuple(rank(question, heads, words, nearness, index.entries, max(READ, limit))[:limit])


def proposed(
    index: WordIndex, words: WordHits, nearness: Nearness, where: VectorFilter | None = None
) -> list[EntryHead]:
    """The best of what full text and vectors found, with the neighbours of the very best."""
    found = index.heads(_best(first_scores(words, nearness), _CANDIDATES))
    best = {number for scores in (words.own, nearness) for number in _best(scores, _WITH_NEIGHBOURS)}
    beside = index.heads_beside((head for head in found if head.number in best), where)
    return list({*found, *beside})


def _best(scores: Mapping[int, float], amount: int) -> list[int]:
    return sorted(scores, key=lambda number: -scores[number])[:amount]
