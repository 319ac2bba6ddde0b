"""The vectors of long entries: how a text is divided, and that an entry has all of its vectors or none."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import WordIndex
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.passages import count_passages, embedded_texts, passages, start_of, vectors_of
from errand.engine.memory.ranking.question import read_question
from errand.engine.memory.search import MemorySearch, Semantics
from errand.engine.memory.vector_filler import VectorFiller
from errand.engine.memory.vector_states import counts
from errand.engine.memory.vectors.base import MAX_PARTS, VectorPoint
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.protocol.memory import MemorySearchParams
from tests.engine.memory.test_memory import said
from tests.support.engine_parts import engine_parts
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import ModelServer, Reply

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
LONG = " ".join(f"This is sentence {number} of a long answer about the harbour." for number in range(60))


def entry(number: int, text: str) -> MemoryEntry:
    return MemoryEntry(number, f"n{number}", "c1", "Mara", "agent", START, text)


def test_a_short_entry_has_one_text_with_who_said_it_and_when() -> None:
    assert embedded_texts(entry(1, "The kettle leaks.")) == ["Mara (Monday, 02 March 2026): The kettle leaks."]
    assert len(embedded_texts(entry(1, "word " * 160))) == 1


def test_a_long_entry_has_passages_of_like_lengths_that_end_with_sentences() -> None:
    parts = passages(LONG)
    assert "".join(parts) == LONG
    assert len(parts) == count_passages(LONG) == 6
    assert all(part.rstrip().endswith(".") and 450 < len(part) < 750 for part in parts)
    assert all(text.startswith("Mara (Monday, 02 March 2026): This is") for text in embedded_texts(entry(1, LONG)))


def test_it_is_known_where_each_passage_begins() -> None:
    parts = passages(LONG)
    assert [LONG[start_of(LONG, part) :].startswith(text) for part, text in enumerate(parts)] == [True] * 6
    assert start_of(LONG, 0) == start_of("short", 15) == 0


def test_lines_end_passages_before_sentences_do_and_words_where_there_is_neither() -> None:
    lines = "".join(f"{number} No. 7 of the harbour, checked and paid.\n" for number in range(40))
    assert all(part.endswith("\n") for part in passages(lines))
    assert all(part.endswith(" ") for part in passages("word " * 1_000)[:-1])


@pytest.mark.parametrize("text", ["x" * 100_000, "\n" * 100_000, "a b " * 500_000, "é. " * 1_000, ""])
def test_any_text_has_a_bounded_number_of_passages(text: str) -> None:
    parts = passages(text)
    assert "".join(parts) == text
    assert 1 <= len(parts) == count_passages(text) <= MAX_PARTS


class Noting(EmbeddedVectors):
    """Says how many points came at once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ENGLISH.dimensions, vectors_of(ENGLISH))
        self.amounts: list[int] = []

    async def upsert(self, points: Sequence[VectorPoint]) -> None:
        self.amounts.append(len(points))
        await super().upsert(points)


class Memory:
    def __init__(self, folder: Path, model: Path) -> None:
        self.index = IndexThread(folder / "memory.db")
        self.vectors = Noting(folder / "vectors")
        self.embedder = Embedder(lambda: model)
        semantics = Semantics(self.embedder, self.vectors)
        self.filler = VectorFiller(self.index, semantics, ENGLISH, lambda: False)
        self.search = MemorySearch(self.index, semantics, self.filler)

    async def filled(self, *entries: MemoryEntry) -> dict[str, int]:
        """Add these entries; how many there are in each state once none is wanted."""
        await self.index.run(partial(_add, entries))
        self.filler.wake()
        async with asyncio.timeout(WAIT_LIMIT_S):
            while True:
                states = await self.index.run(counts)
                if not states.get("wanted"):
                    return states
                await asyncio.sleep(0.02)


@asynccontextmanager
async def opened(folder: Path, model: Path) -> AsyncGenerator[Memory]:
    memory = Memory(folder, model)
    running = asyncio.create_task(memory.filler.run())
    try:
        yield memory
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await memory.embedder.close()
        await memory.vectors.close()
        await memory.index.close()


@pytest.fixture
async def memory(tmp_path: Path, model: Path) -> AsyncGenerator[Memory]:
    async with opened(tmp_path, model) as opened_memory:
        yield opened_memory


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")


async def test_what_stands_late_in_a_long_entry_is_found_by_its_meaning(memory: Memory) -> None:
    last = "saffron tulips bloom beside windmill seven"
    assert await memory.filled(entry(1, f"{LONG}\n{last}"), *(entry(n, f"{LONG} {n}") for n in range(2, 6))) == {
        "made": 5
    }
    search_result = await memory.search.find(read_question(last), 5, CancelSignal())
    assert max(search_result.nearness, key=lambda number: search_result.nearness[number]) == 1
    assert set(search_result.nearness) == {1, 2, 3, 4, 5}


async def test_long_entries_are_embedded_and_stored_a_few_at_a_time_and_whole(memory: Memory) -> None:
    entries = [entry(number, LONG * (1 + number % 3)) for number in range(1, 31)]
    assert await memory.filled(*entries) == {"made": 30}
    assert max(memory.vectors.amounts) <= 64
    assert (
        sum(memory.vectors.amounts)
        == await memory.vectors.count()
        == sum(len(passages(long_entry.text)) for long_entry in entries)
    )


async def test_of_an_entry_that_leaves_all_vectors_leave(memory: Memory) -> None:
    await memory.filled(entry(1, LONG), entry(2, "The kettle leaks."))
    await memory.index.run(partial(_remove, (1,)))
    memory.filler.remove((1,))
    await memory.filled(entry(3, "The stove too."))
    assert (await memory.vectors.numbers(), await memory.vectors.count()) == ({2, 3}, 2)


async def test_an_entry_whose_vectors_cannot_be_used_is_noted_and_the_others_get_theirs(memory: Memory) -> None:
    bad = entry(2, f"{LONG} nan {LONG}")
    assert await memory.filled(entry(1, LONG), bad, entry(3, "The kettle leaks.")) == {"made": 2, "failed": 1}
    assert await memory.vectors.numbers() == {1, 3}
    assert await memory.filled(entry(4, "The stove too.")) == {"made": 3, "failed": 1}
    assert memory.filler.problem == ""


async def test_vectors_that_were_made_of_whole_entries_are_thrown_away_and_made_again(
    tmp_path: Path, model: Path
) -> None:
    async with opened(tmp_path, model) as memory:
        await memory.filled(entry(1, LONG))
    about = tmp_path / "vectors" / "index.json"
    about.write_text(about.read_text().replace(vectors_of(ENGLISH), "sentence-transformers/all-MiniLM-L6-v2"))
    async with opened(tmp_path, model) as memory:
        assert await memory.filled(entry(2, "The kettle leaks.")) == {"made": 2}
        assert await memory.vectors.count() == 7
    assert vectors_of(ENGLISH) in about.read_text()


async def test_a_model_that_gives_no_usable_vectors_is_told_and_words_are_searched(tmp_path: Path, model: Path) -> None:
    server = ModelServer(answer=lambda request: Reply(text="Noted."))
    async with engine_parts(tmp_path / "engine", server) as engine:
        engine.services.settings.set("embedding_folder", str(model))
        await said(engine, "The kettle has nan litres")
        async with asyncio.timeout(WAIT_LIMIT_S):
            while True:
                stats = await engine.services.memory.stats()
                if stats.vectors and not stats.to_embed:
                    break
                engine.services.memory.rules_changed()
                await asyncio.sleep(0.05)
        search_result = await engine.services.memory.reader.search(
            MemorySearchParams(text="nan litres"), CancelSignal()
        )
    assert (stats.entries, stats.vectors) == (2, 1)
    assert "failed on 1 entry" in stats.problem
    assert search_result.hits[0].text == "The kettle has nan litres"
    assert search_result.remark.startswith(
        "Only words were searched. The embedding model made a vector without a direction"
    )


def _add(entries: Sequence[MemoryEntry], index: WordIndex) -> None:
    index.add(entries)


def _remove(numbers: Sequence[int], index: WordIndex) -> None:
    index.remove(numbers)
