"""The search of memory with 10,000 and 100,000 entries, and recall at the start of a task."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

import msgspec
import psutil

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import DIMENSIONS, Embedder
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import WordIndex
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.passages import VECTORS_OF, point_of
from errand.engine.memory.question import read_question
from errand.engine.memory.search import MemorySearch, Semantics
from errand.engine.memory.vector_states import set_states
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.engine.memory.word_hits import word_hits
from errand.engine.storage.records import conversations, nodes
from errand.engine.tools.base import Vector
from errand.paths import Paths
from errand.protocol.conversations import Node
from tests.benchmarks.memory.histories import FOLDER, load
from tests.benchmarks.row import Row
from tests.support.engine_parts import EngineParts, engine_parts, remembered
from tests.support.minilm import minilm
from tests.support.model_server import ModelServer
from tests.support.records import conversation, node
from tests.support.vectors import Clusters

_BATCH = 1_000
_SEARCHES = 60


class _Given(Embedder):
    """Vectors of chance, at once."""

    def __init__(self, vectors: Clusters) -> None:
        super().__init__(Path)
        self._vectors = vectors

    async def embed(self, texts: tuple[str, ...], cancel: CancelSignal, background: bool = False) -> tuple[Vector, ...]:
        return tuple(self._vectors.vector() for _ in texts)


async def memory_searches() -> list[Row]:
    return [*await _searches(10_000, (8, 20)), *await _searches(100_000, (60, 150))]


async def _searches(count: int, limits: tuple[float, float]) -> list[Row]:
    """A whole search with a vector that is there already."""
    with tempfile.TemporaryDirectory() as folder:
        thread, store = IndexThread(Path(folder, "memory.db")), EmbeddedVectors(Path(folder, "v"), DIMENSIONS, "bench")
        await _fill(thread, store, count)
        await store.optimise()
        await thread.close()
        before, started = _memory(), time.perf_counter()
        thread = IndexThread(Path(folder, "memory.db"))
        await thread.run(partial(word_hits, ("kettle",)))
        opening = time.perf_counter() - started
        search, taken = MemorySearch(thread, Semantics(_Given(Clusters(2)), store)), list[float]()
        for text in islice(_questions(), _SEARCHES):
            started = time.perf_counter()
            found = await search.find(read_question(text), 10, CancelSignal())
            taken.append(1000 * (time.perf_counter() - started))
            assert (len(found.candidates), found.remark) == (10, "")
        grown = _memory() - before
        await thread.close()
        await store.close()
    rows = [
        Row(f"search among {count:,} entries without embedding the question, p50", median(taken), "ms", limits[0]),
        Row("the same, p95", sorted(taken)[int(len(taken) * 0.95)], "ms", limits[1]),
    ]
    if count < 100_000:
        return rows
    return [
        *rows,
        Row(f"opening the words of {count:,} entries, first search", opening, "s", 0.5),
        Row(f"memory of the engine with {count:,} entries, embedder asleep", grown, "MB", 150),
    ]


async def memory_recall() -> list[Row]:
    """What a task with a message waits for memory, the model being loaded; the entries are those of a real record."""
    model = minilm()
    if model is None:
        return []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        async with engine_parts(home, ModelServer()) as engine:
            await _record(engine, 10_000)
            paths = engine.services.paths
        await _add_vectors(paths)
        async with engine_parts(home, ModelServer()) as engine:
            engine.services.settings.set("embedding_folder", str(model))
            await remembered(engine)
            taken, recalled = list[float](), 0
            for text in islice(_questions(), _SEARCHES):
                started = time.perf_counter()
                recalled += len(
                    await engine.services.memory.reader.recall(text, CancelSignal(), (), lambda item: False)
                )
                taken.append(1000 * (time.perf_counter() - started))
            stats = await engine.services.memory.stats()
    assert recalled > _SEARCHES and (stats.entries, stats.vectors) == (10_000, 10_000), stats
    return [Row("added to a turn by recall among 10,000 entries, embedder awake", median(taken[5:]), "ms", 15)]


async def _record(engine: EngineParts, count: int) -> None:
    """So many messages of the histories, stored as the engine stores them, and indexed."""
    journal, known = engine.services.database.journal, set[str]()
    entries = islice(_entries(), count)
    while batch := list(islice(entries, _BATCH)):
        new = {entry.conversation_id for entry in batch} - known
        known |= new
        journal.put(*(conversations.save(conversation(key)) for key in sorted(new)))
        journal.put(*(nodes.save(_node(entry)) for entry in batch))
        await journal.flush()
        engine.services.memory.rules_changed()
        await remembered(engine)


def _node(entry: MemoryEntry) -> Node:
    made = node(entry.id, conversation_id=entry.conversation_id, text=entry.text)
    role = "user" if entry.role == "user" else "assistant"
    return msgspec.structs.replace(made, role=role, author=entry.speaker, created_at=entry.at.replace(tzinfo=UTC))


async def _add_vectors(paths: Paths) -> None:
    """Vectors of chance for all entries, in place of an hour of the model."""
    thread = IndexThread(paths.memory / "memory.db")
    store = EmbeddedVectors(paths.memory / "vectors", DIMENSIONS, VECTORS_OF)
    vectors = Clusters(1)
    entries = await thread.run(lambda index: [one.entry for one in index.select("true", ())])
    await store.upsert([point_of(entry, vectors.vector()) for entry in entries])
    await store.optimise()
    identity = await thread.run(WordIndex.identity)
    await thread.run(partial(set_states, identity, [entry.number for entry in entries], "made"))
    await asyncio.to_thread((paths.memory / "vectors.of").write_text, identity)
    await thread.close()
    await store.close()


async def _fill(thread: IndexThread, store: EmbeddedVectors, count: int) -> None:
    vectors, entries = Clusters(1), _entries()
    for _ in range(0, count, _BATCH):
        batch = list(islice(entries, _BATCH))
        await thread.run(partial(_add, batch))
        await store.upsert([point_of(entry, vectors.vector()) for entry in batch])


def _add(batch: list[MemoryEntry], index: WordIndex) -> None:
    index.add(batch)


def _entries() -> Iterator[MemoryEntry]:
    """The entries of all histories, again and again as other conversations."""
    histories = [load(file) for file in sorted(FOLDER.glob("*.jsonl"))]
    number = 0
    for copy in range(1_000):
        for history in histories:
            for one in history.entries:
                number += 1
                session = f"{history.name} {one.session} {copy}"
                at = one.at + timedelta(days=7 * copy)
                yield MemoryEntry(number, f"{number}", session, one.speaker, one.role, at, one.text)


def _questions() -> Iterator[str]:
    while True:
        for file in sorted(FOLDER.glob("*.jsonl")):
            for question in load(file).questions[:10]:
                yield question.text


def _memory() -> float:
    return psutil.Process().memory_info().rss / 1_048_576
