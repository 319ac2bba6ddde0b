"""Finds entries by a question: full text and vectors propose, the ranking decides."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import SIMPLE, ModelKind
from errand.engine.memory.index import EntryHead, WordIndex
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.ranking.copies import equal_once, stand_once, without_most_copies
from errand.engine.memory.ranking.days import Period
from errand.engine.memory.ranking.question import Question
from errand.engine.memory.ranking.ranking import NOTHING_STATED, READ, Candidate, first_scores, rank
from errand.engine.memory.vectors.base import (
    VectorFilter,
    VectorHit,
    VectorsDamaged,
    VectorsError,
    VectorsMismatch,
    VectorStore,
)
from errand.engine.memory.words.hits import WordHits, word_hits
from errand.engine.tools.results import ToolError

# Cosines by the numbers of the nearest entries.
Nearness: TypeAlias = Mapping[int, float]
_Nearest: TypeAlias = tuple[VectorHit, ...]

NEAREST = 200
# Read and ranked. On the histories the first ten are the same with all of them, the first twenty lack 0.3 %.
_CANDIDATES = 150
# The turns around this many of the best hits are candidates too: they may hold the answer.
_WITH_NEIGHBOURS = 30
# They take the places of those that nearly equal others.
_SPARE = 10
# So many entries of the days that a question names are candidates, if these are few.
_OF_NAMED_DAYS = 40
_MAX_NAMED_DAYS = 10
_YEARS = range(1971, 9_000)


@dataclass(frozen=True, slots=True)
class Semantics:
    """The means to search by meaning: a model and the vectors that it made."""

    embedder: Embedder
    vectors: VectorStore


class VectorKeeper(Protocol):
    """The keeper of the vectors, which follow the index of words."""

    async def check(self) -> ModelKind:
        """Check, before the vectors are used, that they belong to this index, and return of which model they are.

        Raises a `VectorsError`.
        """
        ...

    def suspect(self) -> None:
        """Report vectors that a search found damaged: they are checked in the background, and made again."""
        ...


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The candidates, best first, with the cosines of the nearest by their numbers, and the passages they are of.

    `remark` says why meanings were not searched; empty if they were.
    """

    candidates: tuple[Candidate, ...]
    nearness: Nearness
    passages: Mapping[int, int]
    remark: str = ""


class MemorySearch:
    """The search in memory. Without `semantics`, or while these do not work, it uses full text alone."""

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
    ) -> SearchOutcome:
        """Return the best entries. After `patience_s` it gives up on meanings. Raises `IndexUnavailable`."""
        looking = self._begin((question.text,), where, cancel) if by_meaning else None
        hits = await self._index.read(
            lambda index: word_hits(question.terms, index, where, question.text, question.language)
        )
        (nearest,), remark = await self._outcome(looking, patience_s) if looking is not None else (((),), "")
        nearness = {hit.number: hit.score for hit in nearest}
        candidates = await self._index.read(partial(ranked, question, hits, nearness, limit, where))
        return SearchOutcome(candidates, nearness, {hit.number: hit.part for hit in nearest}, remark)

    @property
    def is_simple(self) -> bool:
        """True if the simple model compares the meanings."""
        return self._semantics is not None and self._semantics.embedder.kind == SIMPLE

    async def nearest(
        self, texts: tuple[str, ...], cancel: CancelSignal, where: VectorFilter | None, patience_s: float
    ) -> tuple[_Nearest, ...]:
        """Return the nearest entries of each text; nothing without a model, or if that takes longer."""
        looking = self._begin(texts, where, cancel)
        return (await self._outcome(looking, patience_s))[0] if looking is not None else ((),)

    def _begin(
        self, texts: tuple[str, ...], where: VectorFilter | None, cancel: CancelSignal
    ) -> "asyncio.Task[tuple[_Nearest, ...]] | None":
        """Start the search by meaning. It goes on when it is late: it loads the model for the next search."""
        if self._semantics is None:
            return None
        looking = asyncio.create_task(self._nearest(self._semantics, texts, where, cancel), name="search by meaning")
        looking.add_done_callback(_seen)
        return looking

    async def _outcome(
        self, looking: "asyncio.Task[tuple[_Nearest, ...]]", patience_s: float | None
    ) -> tuple[tuple[_Nearest, ...], str]:
        """Return the hits, and a remark if meanings could not be searched."""
        try:
            async with asyncio.timeout(patience_s):
                return await asyncio.shield(looking), ""
        except TimeoutError:
            return ((),), "Only words were searched: the embedding model was not ready in time."
        except (ToolError, VectorsError, OSError) as error:
            if self._keeper is not None and isinstance(error, VectorsDamaged | VectorsMismatch):
                self._keeper.suspect()
            return ((),), f"Only words were searched. {error}"

    async def _nearest(
        self, semantics: Semantics, texts: tuple[str, ...], where: VectorFilter | None, cancel: CancelSignal
    ) -> tuple[_Nearest, ...]:
        kind = await self._keeper.check() if self._keeper is not None else None
        vectors = await semantics.embedder.embed(texts, cancel, kind=kind)
        return tuple([await semantics.vectors.search(vector, NEAREST, where) for vector in vectors])


def _seen(looking: "asyncio.Task[tuple[_Nearest, ...]]") -> None:
    """Mark an error as seen: nobody waits for this search any more."""
    if not looking.cancelled():
        looking.exception()


def ranked(
    question: Question,
    hits: WordHits,
    nearness: Nearness,
    limit: int,
    where: VectorFilter | None,
    index: WordIndex,
) -> tuple[Candidate, ...]:
    heads = proposed(question, index, hits, nearness, where)
    stated = index.stated_days(head.number for head in heads) if question.days else NOTHING_STATED
    best = equal_once(rank(question, heads, hits, nearness, index.traits, max(READ, limit), stated=stated), heads)
    best = best[: limit + _SPARE]
    entries = {indexed.entry.number: indexed for indexed in index.entries(number for _, number, _ in best)}
    candidates = [Candidate(entries[number], features, score) for score, number, features in best]
    return tuple(stand_once(question, candidates)[:limit])


def proposed(
    question: Question, index: WordIndex, hits: WordHits, nearness: Nearness, where: VectorFilter | None = None
) -> list[EntryHead]:
    """Return the best hits of full text and vectors with the neighbours of the very best, and entries of named days."""
    scores = first_scores(hits, nearness)
    head_list = without_most_copies(question, index.heads(_best(scores, _CANDIDATES)), scores)
    best = {number for scores in (hits.own, nearness) for number in _best(scores, _WITH_NEIGHBOURS)}
    neighbours = index.neighbour_heads((head for head in head_list if head.number in best), where)
    return list({*head_list, *neighbours, *_of_named_days(question, index, where)})


def _of_named_days(question: Question, index: WordIndex, where: VectorFilter | None) -> list[EntryHead]:
    """Return entries that tell of the days, few in number, that the question names, and then those written on them."""
    definite = (period for period in question.days.periods if period.has_year and period.first.year in _YEARS)
    days = [day for period in definite for day in (period.first, period.last)]
    if not days or (max(days) - min(days)).days > _MAX_NAMED_DAYS:
        return []
    return index.heads_of_days(Period(min(days), max(days)), where, _OF_NAMED_DAYS)


def _best(scores: Mapping[int, float], amount: int) -> list[int]:
    return sorted(scores, key=scores.__getitem__, reverse=True)[:amount]
