"""The index of vectors on this machine with 100,000 of them: search, exactness, opening and memory."""

import asyncio
import math
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from operator import mul
from pathlib import Path
from statistics import median

import psutil

from errand.engine.memory.vectors.base import VectorFilter, VectorHit
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.engine.tools.context import Vector
from tests.benchmarks.bench import in_new_process
from tests.benchmarks.row import Row
from tests.support.vectors import DIMENSIONS, Clusters

_COUNT = 100_000
_BATCH = 1_000
_EXACT = 10
_SEARCHES = 200
_MODEL = "bench"


async def vectors() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        queries = list(islice(_vectors(2), _SEARCHES))
        exact, inserting, optimising = await in_new_process(_make_store, folder, queries[:_EXACT])
        before = _memory()
        store = EmbeddedVectors(Path(folder), DIMENSIONS, _MODEL)
        started = time.perf_counter()
        assert await store.count() == _COUNT
        opening = time.perf_counter() - started
        results = [await store.search(query, 10) for query in queries[:_EXACT]]
        taken = await _searches(store, queries, None)
        filtered = await _searches(store, queries, VectorFilter(kinds=("user",), not_conversations=("c5",)))
        assert store.pid is not None
        child = psutil.Process(store.pid).memory_info()
        grown = _memory() - before
        await store.close()
    return [
        Row("search among 100,000 vectors, p50", median(taken), "ms", 5),
        Row("the same, p95", _p95(taken), "ms", 10),
        Row("the same with a filter, p50", median(filtered), "ms", 15),
        Row("recall@10 of 100,000 vectors against exact", _recall(exact, results), "", 0.99, more_is_better=True),
        Row("opening 100,000 vectors, with the start of its process", opening, "s", 0.5),
        Row("storing 1,000 vectors", 1000 * inserting / _COUNT, "s", 0.5),
        Row("optimising 100,000 new vectors", optimising, "s", 30),
        Row("memory of the engine for it", grown, "MB", 10),
        Row("memory of its process, without mapped files", (child.rss - child.shared) / 1_048_576, "MB", 100),
        Row("the same with mapped files", child.rss / 1_048_576, "MB", 400),
    ]


def _make_store(folder: str, queries: list[Vector]) -> tuple[list[list[int]], float, float]:
    """Like `_fill`, with the seconds that optimising took."""

    async def make() -> tuple[list[list[int]], float, float]:
        store = EmbeddedVectors(Path(folder), DIMENSIONS, _MODEL)
        exact, inserting = await _fill(store, queries)
        started = time.perf_counter()
        await store.optimise()
        optimising = time.perf_counter() - started
        await store.close()
        return exact, inserting, optimising

    return asyncio.run(make())


async def _fill(store: EmbeddedVectors, queries: list[Vector]) -> tuple[list[list[int]], float]:
    """Store the vectors; returns the exact ten best numbers for each query, and the seconds that storing took."""
    unit = [[number / math.hypot(*query) for number in query] for query in queries]
    scores: list[list[tuple[float, int]]] = [[] for _ in queries]
    points, inserting = Clusters(1).points(_COUNT), 0.0
    while batch := list(islice(points, _BATCH)):
        for point in batch:
            length = math.hypot(*point.vector)
            for best, query in zip(scores, unit, strict=True):
                best.append((sum(map(mul, query, point.vector)) / length, point.number))
        scores = [sorted(best, reverse=True)[:10] for best in scores]
        started = time.perf_counter()
        await store.upsert(batch)
        inserting += time.perf_counter() - started
    return [[number for _, number in best] for best in scores], inserting


async def _searches(store: EmbeddedVectors, queries: list[Vector], where: VectorFilter | None) -> list[float]:
    """Milliseconds of each search, as the engine sees it."""
    taken: list[float] = []
    for query in queries:
        started = time.perf_counter()
        await store.search(query, 10, where)
        taken.append(1000 * (time.perf_counter() - started))
    return taken


def _vectors(seed: int) -> Iterator[Vector]:
    clusters = Clusters(seed)
    while True:
        yield clusters.vector()


def _recall(exact: list[list[int]], results: list[tuple[VectorHit, ...]]) -> float:
    right = sum(len(set(best) & {hit.number for hit in hits}) for best, hits in zip(exact, results, strict=True))
    return right / sum(map(len, exact))


def _p95(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.95)]


def _memory() -> float:
    return psutil.Process().memory_info().rss / 1_048_576
