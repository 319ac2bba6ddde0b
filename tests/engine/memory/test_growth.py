"""How the cost of a search grows with the number of entries, and what becomes of a search that nobody waits for."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.index import WordIndex
from errand.engine.memory.index_thread import IndexThread
from errand.engine.memory.reader import MemoryReader
from errand.engine.storage.records import conversations, nodes
from errand.protocol.memory import MemoryFilter, MemorySearchParams
from tests.support.engine_parts import EngineParts, engine_parts, remembered
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import ModelServer
from tests.support.records import conversation, node

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
SMALL, LARGE = 400, 3_200
# Each entry costs as much as before, or a little more; with the square of the number it would be eight times as much.
MAX_GROWTH = 3 * LARGE / SMALL
QUESTIONS = tuple(f"Which kettle stands in room {number} beside cupboard {number + 100}?" for number in range(12))
FILTERS = {
    "conversation": MemoryFilter(conversation_ids=("c1", "c2")),
    "folder": MemoryFilter(folders=("/work/a",)),
    "role": MemoryFilter(roles=("user",)),
    "after": MemoryFilter(after=START + timedelta(hours=5)),
    "before": MemoryFilter(before=START + timedelta(days=9_999)),
}

Look = Callable[[MemoryReader, str], Awaitable[object]]


async def recall(reader: MemoryReader, question: str) -> object:
    """Recall as a task does, from all conversations but its own. Nothing stands out among texts that are all alike."""
    return (await reader.recall(question, CancelSignal(), ("c3",), lambda item: False), "looked")


def searching(where: MemoryFilter) -> Look:
    async def search(reader: MemoryReader, question: str) -> object:
        return await reader.search(MemorySearchParams(text=question, where=where), CancelSignal())

    return search


async def fill(engine: EngineParts, count: int) -> None:
    journal = engine.services.database.journal
    for number in range(10):
        folder = f"/work/{'ab'[number % 2]}"
        journal.put(conversations.save(msgspec.structs.replace(conversation(f"c{number}"), workspace=folder)))
    for number in range(count):
        text = f"In room {number % 40} a kettle stands beside cupboard {number}, which is painted green."
        entry = node(f"n{number}", conversation_id=f"c{number % 10}", text=text)
        journal.put(nodes.save(msgspec.structs.replace(entry, created_at=START + timedelta(hours=number))))
    await journal.flush()
    engine.services.memory.rules_changed()
    await remembered(engine)
    assert (await engine.services.memory.stats()).entries == count


async def costs(engine: EngineParts, looks: dict[str, Look]) -> dict[str, float]:
    """The seconds of CPU that each way to look took for all questions."""
    taken = dict[str, float]()
    for name, look in looks.items():
        began = time.process_time()
        for question in QUESTIONS:
            assert await look(engine.services.memory.reader, question)
        taken[name] = time.process_time() - began
    return taken


async def test_recall_and_filtered_searches_do_not_grow_with_the_square_of_the_entries(tmp_path: Path) -> None:
    looks: dict[str, Look] = {"recall": recall, **{name: searching(where) for name, where in FILTERS.items()}}
    taken: list[dict[str, float]] = []
    for count in (SMALL, LARGE):
        async with engine_parts(tmp_path / str(count), ModelServer()) as engine:
            await fill(engine, count)
            await costs(engine, looks)  # what is imported and read once
            taken.append(await costs(engine, looks))
    small, large = taken
    growth = {name: large[name] / small[name] for name in looks}
    assert max(growth.values()) < MAX_GROWTH, growth


async def test_a_search_that_nobody_waits_for_ends_and_others_go_on(tmp_path: Path) -> None:
    thread = IndexThread(tmp_path / "memory.db")
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(index: WordIndex) -> object:
        loop.call_soon_threadsafe(begun.set)
        return index.connection.execute(endless).fetchone()

    async with asyncio.timeout(WAIT_LIMIT_S):
        search = asyncio.create_task(thread.read(work))
        await begun.wait()
        search.cancel()
        await asyncio.wait([search])
        assert await thread.run(WordIndex.next_number) == 1
        await thread.close()
