"""Embedding with the real model: a query alone and beside background work, and the memory of the process."""

import asyncio
import statistics
import time

import psutil

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from tests.benchmarks.row import Row
from tests.support.minilm import minilm

_QUERIES = 100
_MAX_MB = 400
_LONG = "We moved the deadline of the report, since the figures of the second quarter are not there yet. " * 20


async def embedding() -> list[Row]:
    """No rows without the model: see `make model`."""
    folder = minilm()
    if folder is None:
        return []
    embedder = Embedder(lambda: folder)
    try:
        return await _rows(embedder)
    finally:
        await embedder.close()


async def _rows(embedder: Embedder) -> list[Row]:
    start = await _query(embedder, 0)
    alone = [await _query(embedder, number) for number in range(_QUERIES)]
    work = asyncio.create_task(embedder.embed((_LONG,) * 64, CancelSignal(), background=True))
    during_work: list[float] = []
    while not work.done():
        during_work.append(await _query(embedder, len(during_work)))
        await asyncio.sleep(0.2)
    await work
    assert embedder.pid is not None
    memory = psutil.Process(embedder.pid).memory_info().rss / 1e6
    return [
        Row("query embedding, model loaded, p50", statistics.median(alone), "ms", 10),
        Row("query embedding beside background work, longest", max(during_work), "ms", 300),
        Row("start of the process that embeds, to the first vector", start, "ms", 3_000),
        Row("memory of that process after 64 long texts", memory, "MB", _MAX_MB),
    ]


async def _query(embedder: Embedder, number: int) -> float:
    """Embed one question and return how long it took, in ms."""
    began = time.perf_counter()
    await embedder.embed((f"What did we decide about the deadline of report {number}?",), CancelSignal())
    return (time.perf_counter() - began) * 1_000
