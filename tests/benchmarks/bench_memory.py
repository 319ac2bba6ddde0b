"""The search of memory with 10,000 and 100,000 entries, and recall at the start of a task with 1,000, too."""

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
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH, ModelKind
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.index import WordIndex
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.passages import point_of, vectors_of
from errand.engine.memory.ranking.question import read_question
from errand.engine.memory.search import MemorySearch, Semantics
from errand.engine.memory.vector_states import set_states
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.engine.memory.words.hits import word_hits
from errand.engine.storage.records import conversations, nodes
from errand.engine.tools.context import Vector
from errand.protocol.conversations import Node
from errand.protocol.memory import MemoryListParams
from errand.system.paths import Paths
from tests.benchmarks.bench import in_new_process
from tests.benchmarks.memory.histories import all_histories
from tests.benchmarks.row import Row
from tests.support.engine_parts import EngineParts, engine_parts, remembered
from tests.support.minilm import minilm
from tests.support.model_server import ModelServer
from tests.support.records import conversation, node
from tests.support.vectors import Clusters

_BATCH = 1_000
_SEARCHES = 60
# p50 and p95 by the number of entries. A task waits for recall for 2 s at most.
_RECALL_LIMITS_MS = {1_000: (10, 30), 10_000: (15, 40), 100_000: (60, 150)}
_COUNT_WITH_MODEL = 10_000


class _Given(Embedder):
    """Vectors of chance, at once."""

    def __init__(self, vectors: Clusters) -> None:
        super().__init__(Path)
        self._vectors = vectors

    async def embed(
        self, texts: tuple[str, ...], cancel: CancelSignal, background: bool = False, kind: ModelKind | None = None
    ) -> tuple[Vector, ...]:
        return tuple(self._vectors.vector() for _ in texts)


async def memory_searches() -> list[Row]:
    return [*await _searches(10_000, (8, 20)), *await _searches(100_000, (60, 150))]


async def _searches(count: int, limits: tuple[float, float]) -> list[Row]:
    """Whole searches with a vector that is there already, by a process that filled nothing."""
    with tempfile.TemporaryDirectory() as folder:
        await in_new_process(_fill_index, folder, count)
        before, started = _memory_mb(), time.perf_counter()
        thread, store = _stores(folder)
        await thread.run(partial(word_hits, ("kettle",)))
        opening = time.perf_counter() - started
        search, taken = MemorySearch(thread, Semantics(_Given(Clusters(2)), store)), list[float]()
        for text in islice(_questions(), _SEARCHES):
            started = time.perf_counter()
            recalled = await search.find(read_question(text), 10, CancelSignal())
            taken.append(1000 * (time.perf_counter() - started))
            assert (len(recalled.candidates), recalled.remark) == (10, "")
        grown = _memory_mb() - before
        assert store.pid is not None
        vector_process = psutil.Process(store.pid).memory_info()
        await thread.close()
        await store.close()
    rows = [
        Row(f"search among {count:,} entries without embedding the question, p50", median(taken), "ms", limits[0]),
        Row("the same, p95", _p95(taken), "ms", limits[1]),
    ]
    if count < 100_000:
        return rows
    unmapped = (vector_process.rss - vector_process.shared) / 1_048_576
    return [
        *rows,
        Row(f"opening the words of {count:,} entries, first search", opening, "s", 0.5),
        Row(f"memory of a new process with {count:,} entries, embedder asleep", grown, "MB", 150),
        Row("memory of its vector process, without mapped files", unmapped, "MB", 100),
    ]


async def memory_recall() -> list[Row]:
    """Measure how long a task waits for memory, by words, and with the model loaded if there is one."""
    rows: list[Row] = []
    for count, limits in _RECALL_LIMITS_MS.items():
        with tempfile.TemporaryDirectory() as name:
            await in_new_process(_make_record, Path(name), count)
            taken = await _recalls(Path(name), count, None)
            rows.append(Row(f"added to a turn by recall among {count:,} entries, p50", median(taken), "ms", limits[0]))
            rows.append(Row("the same, p95", _p95(taken), "ms", limits[1]))
            model = minilm() if count == _COUNT_WITH_MODEL else None
            if model is not None:
                await in_new_process(_make_vectors, Path(name))
                by_meaning = median((await _recalls(Path(name), count, model))[5:])
                rows.append(Row("the same with vectors, embedder awake, p50", by_meaning, "ms", 15))
    return rows


async def _recalls(home: Path, count: int, model: Path | None) -> list[float]:
    """The ms of each recall, as a task of the newest conversation makes it: with all entries but its own."""
    taken, recalled = list[float](), 0
    async with engine_parts(home, ModelServer()) as engine:
        if model is not None:
            engine.services.settings.set("embedding_folder", str(model))
        await remembered(engine)
        reader = engine.services.memory.reader
        newest = (await reader.page(MemoryListParams(limit=1))).items[0].conversation_id
        for text in islice(_questions(), _SEARCHES):
            started = time.perf_counter()
            recalled += len(await reader.recall(text, CancelSignal(), (newest,), lambda item: False))
            taken.append(1000 * (time.perf_counter() - started))
        stats = await engine.services.memory.stats()
    assert recalled > _SEARCHES / 2 and (stats.entries, stats.vectors) == (count, count if model else 0), stats
    return taken


def _make_record(home: Path, count: int) -> None:
    """Make a data directory with so many entries of a real record, all indexed."""

    async def record() -> None:
        async with engine_parts(home, ModelServer()) as engine:
            await _record(engine, count)

    asyncio.run(record())


def _make_vectors(home: Path) -> None:
    asyncio.run(_add_vectors(Paths(home / "data")))


def _fill_index(folder: str, count: int) -> None:
    """Make both indexes with so many entries."""

    async def fill() -> None:
        thread, store = _stores(folder)
        await _fill(thread, store, count)
        await store.optimise()
        await thread.close()
        await store.close()

    asyncio.run(fill())


def _stores(folder: str) -> tuple[IndexThread, EmbeddedVectors]:
    return IndexThread(Path(folder, "memory.db")), EmbeddedVectors(Path(folder, "v"), ENGLISH.dimensions, "bench")


async def _record(engine: EngineParts, count: int) -> None:
    """So many messages of the histories, stored as the engine stores them, and indexed."""
    journal, stored_ids = engine.services.database.journal, set[str]()
    entries = islice(_entries(), count)
    while batch := list(islice(entries, _BATCH)):
        new = {entry.conversation_id for entry in batch} - stored_ids
        stored_ids |= new
        journal.put(*(conversations.save(conversation(key)) for key in sorted(new)))
        journal.put(*(nodes.save(_node(entry)) for entry in batch))
        await journal.flush()
    memory = engine.services.memory
    memory.rules_changed()
    while (await memory.stats()).to_index:  # noqa: ASYNC110 -- it sets no event
        await asyncio.sleep(0.1)


def _node(entry: MemoryEntry) -> Node:
    plain_node = node(entry.id, conversation_id=entry.conversation_id, text=entry.text)
    role = "user" if entry.role == "user" else "assistant"
    return msgspec.structs.replace(plain_node, role=role, author=entry.speaker, created_at=entry.at.replace(tzinfo=UTC))


async def _add_vectors(paths: Paths) -> None:
    """Vectors of chance for all entries, in place of an hour of the model."""
    thread = IndexThread(paths.memory / "memory.db")
    store = EmbeddedVectors(paths.memory / "vectors", ENGLISH.dimensions, vectors_of(ENGLISH))
    vectors = Clusters(1)
    entries = await thread.run(lambda index: [row.entry for row in index.select("true", ())])
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
    """The entries of all short histories, again and again as other conversations."""
    histories = all_histories(("short",))
    number = 0
    for copy in range(1_000):
        for history in histories:
            for entry in history.entries:
                number += 1
                session = f"{history.name} {entry.session} {copy}"
                at = entry.at + timedelta(days=7 * copy)
                yield MemoryEntry(number, f"{number}", session, entry.speaker, entry.role, at, entry.text)


def _questions() -> Iterator[str]:
    while True:
        for history in all_histories(("short",)):
            for question in history.questions[:10]:
                yield question.text


def _memory_mb() -> float:
    return psutil.Process().memory_info().rss / 1_048_576


def _p95(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.95)]
