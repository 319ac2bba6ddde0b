"""`python -m tests.benchmarks.memory.given`: what messages are given from memory, of what they need and of others.

It needs the model of `make model`; `--simple` measures with the one that comes with Errand, `--words` without any. For
each split: how many of the messages that need a planted fact are given it, by kind, and how many are given anything by
a store that has nothing on them. The weights for the model are fitted on both splits: for messages that they have not
seen, see the cross-validated rates in decision 88. `--list` names the messages that fail.
"""

import asyncio
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from operator import mul
from pathlib import Path
from statistics import fmean
from typing import get_args

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import SIMPLE
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import WordIndex
from errand.engine.memory.passages import embed_entries
from errand.engine.memory.reader import given_entries, recalled_text
from errand.engine.memory.recall.message import parse_message
from errand.engine.memory.recall.relevance import Nearest, Relevant, relevant_entries
from errand.engine.memory.search import NEAREST
from errand.engine.memory.vectors.base import VectorHit, VectorPoint
from errand.engine.tools.context import Vector
from tests.benchmarks.memory.histories import SPLITS, History, Split, all_histories
from tests.benchmarks.memory.messages import (
    Messages,
    Planted,
    PlantedKind,
    Stranger,
    entries_around,
    messages_of,
    planted_entries,
    with_planted,
)
from tests.support.minilm import embedder_for

# As the setting `recall_tokens` allows by default, in characters.
_BUDGET = 6_000


@dataclass(slots=True)
class Stores:
    """Builds the stores; each history is embedded once."""

    histories: Mapping[str, History]
    embedder: Embedder | None
    _points: dict[str, list[VectorPoint]] = field(default_factory=dict[str, list[VectorPoint]])

    async def given(self, case: Planted | Stranger) -> list[str]:
        """Return the texts that the message of a case is given."""
        is_planted = isinstance(case, Planted)
        around = entries_around(case.around if is_planted else case.store, self.histories)
        planted = planted_entries(case, around, self.histories) if is_planted else []
        entries = [
            MemoryEntry(
                number, entry.id, entry.session, entry.speaker, entry.role, entry.at.replace(tzinfo=UTC), entry.text
            )
            for number, entry in enumerate(with_planted(around, planted), 1)
        ]
        message = parse_message(case.message)
        nearest = await self._nearest(message.parts, entries)
        with tempfile.TemporaryDirectory() as folder:
            index = WordIndex(Path(folder) / "memory.db")
            index.connection.execute("PRAGMA synchronous = OFF")
            index.add(entries)
            relevant = relevant_entries(message, nearest, None, index)
            index.close()
        return list(_within_budget(_texts(relevant, case.message)))

    async def _nearest(self, parts: tuple[str, ...], entries: Sequence[MemoryEntry]) -> Nearest:
        """Return the nearest by all cosines, as the exact search of a store would."""
        if self.embedder is None:
            return Nearest()
        points = [point for entry in entries for point in await self._points_of(entry, self.embedder)]
        of_message, *clauses = [_nearest(vector, points) for vector in await self.embedder.embed(parts, CancelSignal())]
        return Nearest(of_message, tuple(clauses), self.embedder.kind == SIMPLE)

    async def _points_of(self, entry: MemoryEntry, embedder: Embedder) -> list[VectorPoint]:
        if entry.id.startswith("planted/"):
            return await embed_entries([entry], embedder)
        if entry.id not in self._points:
            await self._embed_history(entry.id.partition("/")[0], embedder)
        return [replace(point, number=entry.number) for point in self._points[entry.id]]

    async def _embed_history(self, name: str, embedder: Embedder) -> None:
        every = entries_around((name,), self.histories)
        entries = [
            MemoryEntry(number, turn.id, turn.session, turn.speaker, turn.role, turn.at.replace(tzinfo=UTC), turn.text)
            for number, turn in enumerate(every, 1)
        ]
        for point in await embed_entries(entries, embedder):
            self._points.setdefault(entries[point.number - 1].id, []).append(point)


def _nearest(vector: Vector, points: Sequence[VectorPoint]) -> tuple[VectorHit, ...]:
    best: dict[int, VectorHit] = {}
    for point in points:
        cosine = sum(map(mul, vector, point.vector))
        if point.number not in best or best[point.number].score < cosine:
            best[point.number] = VectorHit(point.number, cosine, point.part)
    return tuple(sorted(best.values(), key=lambda hit: -hit.score)[:NEAREST])


def _texts(relevant: Iterable[Relevant], message: str) -> list[str]:
    parsed = parse_message(message)
    return [recalled_text(entry, entry.indexed.entry.text, parsed) for entry in given_entries(relevant)]


def _within_budget(texts: Iterable[str]) -> Iterator[str]:
    budget = _BUDGET
    for text in texts:
        budget -= len(text)
        if budget < 0:
            return
        yield text


def has_all(texts: Collection[str], keys: Iterable[str]) -> bool:
    lower = "\n".join(texts).lower()
    return all(key.lower() in lower for key in keys)


@dataclass(frozen=True, slots=True)
class Rates:
    """The texts that the messages of a split were given, by the name of the case."""

    messages: Messages
    planted_texts: Mapping[str, list[str]]
    stranger_texts: Mapping[str, list[str]]

    def has_fact(self, case: Planted) -> bool:
        return has_all(self.planted_texts[case.planted], case.keys)

    @property
    def planted(self) -> float:
        """The share of messages that are given the planted fact, in percent."""
        return 100 * fmean(map(self.has_fact, self.messages.planted))

    @property
    def strangers(self) -> float:
        """The share of messages to a store with nothing on them that are given something, in percent."""
        return 100 * fmean(map(bool, self.stranger_texts.values()))


async def rates(split: Split, stores: Stores) -> Rates:
    messages = messages_of(split)
    return Rates(
        messages,
        {case.planted: await stores.given(case) for case in messages.planted},
        {case.stranger: await stores.given(case) for case in messages.strangers},
    )


def table(measured: Rates, *, lists_failures: bool) -> Iterator[str]:
    yield "| | |\n|---|---|"
    for kind in get_args(PlantedKind):
        chosen = [case for case in measured.messages.planted if case.kind == kind]
        yield f"| planted, {kind} ({len(chosen)}) | {100 * fmean(map(measured.has_fact, chosen)):.0f} % |"
    yield f"| planted, all kinds ({len(measured.planted_texts)}) | {measured.planted:.0f} % |"
    yield f"| given something by an unrelated store ({len(measured.stranger_texts)}) | {measured.strangers:.0f} % |"
    texts = measured.planted_texts.values()
    characters = fmean(sum(map(len, each)) for each in texts)
    yield f"| entries / characters for a planted message | {fmean(map(len, texts)):.1f} / {characters:.0f} |"
    if lists_failures:
        yield from (f"not given: {case.planted}" for case in measured.messages.planted if not measured.has_fact(case))
        yield from (f"unrelated: {name}: {each[0][:80]!r}" for name, each in measured.stranger_texts.items() if each)


async def main(arguments: Sequence[str]) -> int:
    embedder = None if "--words" in arguments else embedder_for(arguments)
    if embedder is None and "--words" not in arguments:
        return 1
    stores = Stores({history.name: history for history in all_histories()}, embedder)
    try:
        for split in SPLITS:
            if "--tune" in arguments and split != "tune":
                continue
            sys.stdout.write(f"\nGiven with a message, split `{split}`\n\n")
            for line in table(await rates(split, stores), lists_failures="--list" in arguments):
                sys.stdout.write(f"{line}\n")
    finally:
        if embedder is not None:
            await embedder.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
