"""The search of memory with 10,000 and 100,000 entries, and recall at the start of a task."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

import psutil

from app.engine.core.cancel import CancelSignal
from app.engine.memory.embedding import DIMENSIONS
from app.engine.memory.entries import MemoryEntry
from app.engine.memory.index import WordHits, WordIndex
from app.engine.memory.index_thread import IndexThread
from app.engine.memory.passages import VECTORS_OF, point_of
from app.engine.memory.question import Question, read_question
from app.engine.memory.search import NEAREST, ranked
from app.engine.memory.vector_states import set_states
from app.engine.memory.vectors.embedded import EmbeddedVectors
from app.paths import Paths
from tests.benchmarks.bench import Row
from tests.benchmarks.memory.histories import FOLDER, load
from tests.support.engine_parts import engine_parts
from tests.support.minilm import minilm
from tests.support.model_server import ModelServer, Reply
from tests.support.vectors import Clusters

_BATCH = 1_000
_SEARCHES = 60


async def memory_searches() -> list[Row]:
    return [*await _searches(10_000, (8, 20)), *await _searches(100_000, (60, 150))]


async def _searches(count: int, limits: tuple[float, float]) -> list[Row]:
    """All but the embedding of the question: vectors, words, ranking."""
    with tempfile.TemporaryDirectory() as folder:
        thread, store = IndexThread(Path(folder, "memory.db")), EmbeddedVectors(Path(folder, "v"), DIMENSIONS, "bench")
        await _fill(thread, store, count)
        await store.optimise()
        await thread.close()
        before, started = _memory(), time.perf_counter()
        thread = IndexThread(Path(folder, "memory.db"))
        await thread.run(lambda index: index.hits(("kettle",)))
        opening = time.perf_counter() - started
        queries, taken = Clusters(2), list[float]()
        for text in islice(_questions(), _SEARCHES):
            vector = queries.vector()
            started = time.perf_counter()
            question = read_question(text)
            nearness = {hit.number: hit.score for hit in await store.search(vector, NEAREST)}
            words = await thread.run(partial(_hits, question))
            found = await thread.run(partial(ranked, question, words, nearness, 10, None))
            taken.append(1000 * (time.perf_counter() - started))
            assert len(found) == 10
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
    """What a task with a message waits for memory, the model being loaded."""
    model = minilm()
    if model is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        paths = Paths(Path(folder, "data"))
        paths.prepare()
        thread = IndexThread(paths.memory / "memory.db")
        store = EmbeddedVectors(paths.memory / "vectors", DIMENSIONS, VECTORS_OF)
        await _fill(thread, store, 10_000)
        note, identity = paths.memory / "vectors.of", await thread.run(WordIndex.identity)
        await thread.run(partial(set_states, identity, range(1, 10_001), "made"))
        await asyncio.to_thread(note.write_text, identity)
        await thread.close()
        await store.close()
        async with engine_parts(Path(folder), ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
            engine.services.settings.set("embedding_folder", str(model))
            taken: list[float] = []
            for text in islice(_questions(), _SEARCHES):
                started = time.perf_counter()
                await engine.services.memory.reader.recall(text, CancelSignal(), (), lambda item: False)
                taken.append(1000 * (time.perf_counter() - started))
    return [Row("added to a turn by recall among 10,000 entries, embedder awake", median(taken[5:]), "ms", 15)]


async def _fill(thread: IndexThread, store: EmbeddedVectors, count: int) -> None:
    vectors, entries = Clusters(1), _entries()
    for _ in range(0, count, _BATCH):
        batch = list(islice(entries, _BATCH))
        await thread.run(partial(_add, batch))
        await store.upsert([point_of(entry, vectors.vector()) for entry in batch])


def _hits(question: Question, index: WordIndex) -> WordHits:
    return index.hits(question.words)


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
