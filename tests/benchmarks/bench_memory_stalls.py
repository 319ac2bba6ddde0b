"""The delay of the event loop while five tasks stream and memory indexes long texts beside them."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import msgspec

from errand.engine.storage.records import conversations, nodes
from errand.protocol.blocks import ToolResultBlock
from tests.benchmarks.bench import median, p99
from tests.benchmarks.memory.histories import all_histories
from tests.benchmarks.row import Row
from tests.support.engine_parts import EngineParts, engine_parts, remembered
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.records import conversation, node

_REPLY, _REPLIES = 42_000, 40
_RESULT, _RESULTS = 200_000, 20
_TASKS = 5
_TURNS = 5
_STREAM_S = 2.0
_SAMPLE_S = 0.001
# The prompt of the tasks that stream.
_STREAM = "all the tables"


async def memory_stalls() -> list[Row]:
    """Long replies of agents, which tasks made, and longer results of tools, as imports bring them."""
    reply = "".join(islice(_text(), _REPLY))

    def answer(request: ReceivedRequest) -> Reply:
        if _STREAM in str(request.messages[-1].get("content")):
            return Reply(text=reply, piece_length=40, piece_delay_s=0.01)
        return Reply(text=reply, piece_length=4_000)

    with tempfile.TemporaryDirectory() as folder:
        async with engine_parts(Path(folder, "replies"), ModelServer(answer=answer)) as engine:
            for number in range(_REPLIES):
                task = await engine.start(f"table {number}", mode="chat")
                await engine.watcher.end(task.id)
            replies = await _rows(f"replies of {_REPLY // 1_000} KB", engine)
        async with engine_parts(Path(folder, "results"), ModelServer(answer=answer)) as engine:
            await _store_results(engine)
            results = await _rows(f"results of {_RESULT // 1_000} KB", engine)
    return [*replies, *results]


async def _rows(what: str, engine: EngineParts) -> list[Row]:
    """Medians of turns, in each of which other programs disturb both measurements alike."""
    await _rebuild(engine)
    usual, longest, indexed = list[float](), list[float](), 0
    for _ in range(_TURNS):
        alone, _ = await _lateness(engine, indexing=False)
        with_indexing, count = await _lateness(engine, indexing=True)
        usual.append(p99(with_indexing) - p99(alone))
        longest.append(max(with_indexing) - max(alone))
        indexed += count
    return [
        Row(f"event loop later by indexing {what} beside 5 tasks that stream, p99", median(usual), "ms", 5),
        Row("the same, longest", median(longest), "ms", 15),
        Row("entries indexed meanwhile", indexed, "", 5, more_is_better=True),
    ]


async def _lateness(engine: EngineParts, *, indexing: bool) -> tuple[list[float], int]:
    """Return how late a timer would have been at each ms, in ms, and how many entries were indexed meanwhile."""
    tasks = [await engine.start(_STREAM, mode="chat") for _ in range(_TASKS)]
    for task in tasks:
        await engine.watcher.until(partial(_is_streaming, engine, task.id))
    before, late, indexed = len(engine.watcher.deltas), list[float](), 0
    rebuilding = asyncio.create_task(_rebuild(engine)) if indexing else None
    until = time.perf_counter() + _STREAM_S
    while (began := time.perf_counter()) < until:
        await asyncio.sleep(_SAMPLE_S)
        # A stall counts once for each moment at which a timer would have waited for its end.
        delay = 1000 * (time.perf_counter() - began - _SAMPLE_S)
        late += (delay - passed for passed in range(max(1, int(delay))))
        if rebuilding is not None and rebuilding.done():
            indexed += rebuilding.result()
            rebuilding = asyncio.create_task(_rebuild(engine))
    assert len(engine.watcher.deltas) - before > _TASKS * _STREAM_S, "the tasks did not stream"
    for task in tasks:
        assert engine.watcher.tasks(task.id)[-1].outcome.ended_at is None, "a task ended before the measurement"
        await engine.services.runner.stop(task.id, "the benchmark")
    for task in tasks:
        await engine.watcher.end(task.id)
    if rebuilding is not None:
        indexed += (await engine.services.memory.stats()).entries
        await rebuilding
    return late, indexed


def _is_streaming(engine: EngineParts, task_id: str) -> bool:
    return any(delta.task_id == task_id for delta in engine.watcher.deltas)


async def _rebuild(engine: EngineParts) -> int:
    """Rebuild the index and return how many entries it then has."""
    await engine.services.memory.rebuild("the benchmark")
    await remembered(engine)
    return (await engine.services.memory.stats()).entries


async def _store_results(engine: EngineParts) -> None:
    journal, text = engine.services.database.journal, "".join(islice(_text(), _RESULT))
    journal.put(conversations.save(conversation()))
    for number in range(_RESULTS):
        block = ToolResultBlock(call_id=str(number), tool="shell", text=text, is_error=False)
        journal.put(nodes.save(msgspec.structs.replace(node(str(number)), role="tool_result", blocks=(block,))))
    await journal.flush()


def _text() -> Iterator[str]:
    """The characters of all that is said in the short histories, one entry a line, without end."""
    entries = [entry.text for history in all_histories(("short",)) for entry in history.entries]
    return (character for text in cycle(entries) for character in f"{text}\n")
