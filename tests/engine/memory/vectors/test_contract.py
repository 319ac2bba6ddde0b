"""What every store of vectors does, on this machine or on a server."""

import asyncio
import sys
from dataclasses import replace

import pytest

from errand.engine.memory.vectors.base import (
    MAX_PARTS,
    VectorFilter,
    VectorPoint,
    VectorsError,
    VectorsMismatch,
    VectorsUnavailable,
    VectorUnusable,
)
from tests.engine.memory.vectors.conftest import StoreBackend
from tests.support.vectors import DIMENSIONS, Clusters, cosine, nearest, point

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")

_NORTH, _EAST, _BOTH = (1.0, 0.0, 0.0), (0.0, 2.0, 0.0), (3.0, 4.0, 0.0)
_SMALL = (
    VectorPoint(1, _NORTH, "c1", "/a", "user", 10.0),
    VectorPoint(2, _EAST, "c2", "/a", "agent", 20.0),
    VectorPoint(3, _BOTH, "c3", "/b", "tool", 30.5),
)
_LONG = tuple(
    VectorPoint(1, vector, "c1", "/a", "user", 10.0, part) for part, vector in enumerate((_EAST, _BOTH, _NORTH))
)
_FILTERS = (
    (VectorFilter(), {1, 2, 3}),
    (VectorFilter(conversations=("c1", "c3", "unknown")), {1, 3}),
    (VectorFilter(not_conversations=("c1", "unknown")), {2, 3}),
    (VectorFilter(folders=("/a",)), {1, 2}),
    (VectorFilter(folders=("/",)), set[int]()),
    (VectorFilter(not_folders=("/b", "/c")), {1, 2}),
    (VectorFilter(not_folders=("/b",), not_conversations=("c1",)), {2}),
    (VectorFilter(kinds=("agent", "tool")), {2, 3}),
    (VectorFilter(after=20.0), {2, 3}),
    (VectorFilter(before=20.0), {1}),
    (VectorFilter(after=20.0, before=30.5), {2}),
    (VectorFilter(after=30.5), {3}),
    (VectorFilter(("c1", "c2"), ("c1",), ("/a",), ("user", "agent"), 0.0, 99.0), {2}),
    (VectorFilter(conversations=("c1",), not_conversations=("c1",)), set[int]()),
)


async def test_an_empty_store_finds_nothing(backend: StoreBackend) -> None:
    store = backend.open(3)
    assert await store.search(_NORTH, 10) == ()
    assert (await store.count(), await store.numbers()) == (0, frozenset())
    await store.upsert(())
    await store.delete(())
    await store.optimise()


async def test_hits_come_best_first_with_their_cosine(backend: StoreBackend) -> None:
    store = backend.open(3)
    await store.upsert(_SMALL)
    hits = await store.search((0.0, 0.1, 0.0), 10)
    assert [hit.number for hit in hits] == [2, 3, 1]
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.8, 0.0], abs=1e-6)
    assert [hit.number for hit in await store.search(_NORTH, 1)] == [1]


async def test_a_point_takes_the_place_of_the_one_with_its_number(backend: StoreBackend) -> None:
    store = backend.open(3)
    await store.upsert(_SMALL)
    await store.upsert((replace(_SMALL[0], vector=_EAST, kind="task"),))
    assert await store.count() == 3
    assert await store.search(_EAST, 10, VectorFilter(kinds=("user",))) == ()
    (hit,) = await store.search(_EAST, 10, VectorFilter(kinds=("task",)))
    assert (hit.number, hit.score) == (1, pytest.approx(1.0, abs=1e-6))


async def test_a_search_keeps_to_its_filter(backend: StoreBackend) -> None:
    store = backend.open(3)
    await store.upsert(_SMALL)
    for where, numbers in _FILTERS:
        assert {hit.number for hit in await store.search(_BOTH, 10, where)} == numbers, where


async def test_the_order_is_that_of_the_exact_cosine_before_and_after_optimising(backend: StoreBackend) -> None:
    store, clusters = backend.open(), Clusters(1)
    points = list(clusters.points(2_000))
    await store.upsert(points)
    queries = [clusters.vector() for _ in range(10)]
    exact = [nearest(query, points, 10) for query in queries]
    for _ in range(2):
        hit_lists = [await store.search(query, 10) for query in queries]
        right = sum(len({hit.number for hit in hits} & set(best)) for hits, best in zip(hit_lists, exact, strict=True))
        assert right / 100 >= 0.99
        for query, hits in zip(queries, hit_lists, strict=True):
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
            assert [hit.score for hit in hits] == pytest.approx(
                [cosine(query, points[hit.number].vector) for hit in hits], abs=1e-4
            )
        await store.optimise()


async def test_deleted_points_are_gone(backend: StoreBackend) -> None:
    store = backend.open(3)
    await store.upsert(_SMALL)
    await store.delete({2, 99})
    assert await store.numbers() == {1, 3}
    assert {hit.number for hit in await store.search(_EAST, 10)} == {1, 3}


async def test_an_entry_of_several_parts_is_found_once_by_its_nearest(backend: StoreBackend) -> None:
    store = backend.open(3)
    await store.upsert((_LONG[0], _LONG[1], *_SMALL[1:], _LONG[2]))
    hits = await store.search(_NORTH, 10)
    assert [(hit.number, hit.part) for hit in hits] == [(1, 2), (3, 0), (2, 0)]
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.6, 0.0], abs=1e-6)
    assert (await store.numbers(), await store.count()) == ({1, 2, 3}, 5)


async def test_so_many_entries_are_found_however_many_parts_stand_first(backend: StoreBackend) -> None:
    store, clusters = backend.open(), Clusters(5)
    points = list(clusters.points(60))
    query = points[0].vector
    many = [replace(points[number], vector=query, part=part) for number in (0, 1, 2) for part in range(MAX_PARTS)]
    await store.upsert([*many, *points[3:]])
    hits = await store.search(query, 20)
    assert {hit.number for hit in hits[:3]} == {0, 1, 2}
    assert [hit.number for hit in hits[3:]] == nearest(query, points[3:], 17)
    assert len(await store.search(query, 100)) == 60


async def test_an_entry_that_is_stored_again_keeps_no_part_of_before(backend: StoreBackend) -> None:
    store = backend.open(3)
    await store.upsert((*_LONG, _SMALL[1]))
    await store.upsert((replace(_LONG[0], vector=_BOTH),))
    assert await store.count() == 2
    (hit, _) = await store.search(_NORTH, 10)
    assert (hit.number, hit.part, hit.score) == (1, 0, pytest.approx(0.6, abs=1e-6))


async def test_a_deleted_entry_leaves_with_all_its_parts_and_no_other(backend: StoreBackend) -> None:
    store = backend.open(3)
    largest = 2**59 - 1
    others = [replace(point, number=number) for number in (0, 2, largest) for point in _LONG]
    await store.upsert((*_LONG, *others))
    await store.delete((1,))
    assert await store.numbers() == {0, 2, largest}
    assert await store.count() == len(others)


async def test_all_numbers_are_listed_however_many(backend: StoreBackend) -> None:
    store = backend.open(3)
    count = 10_003
    await store.upsert([VectorPoint(number, _BOTH, "c", "/", "user", 1.0) for number in range(7, 7 + count)])
    assert await store.numbers() == set(range(7, 7 + count))
    assert await store.count() == count
    await store.delete(range(7, 7 + count - 1))
    assert await store.numbers() == {6 + count}


async def test_what_was_stored_is_there_after_it_is_opened_again(backend: StoreBackend) -> None:
    store = backend.open(3)
    await store.upsert(_SMALL)
    await store.delete((1,))
    before = await store.search(_BOTH, 10)
    await store.close()
    with pytest.raises(VectorsUnavailable, match="closed"):
        await store.count()
    again = backend.open(3)
    hits = await again.search(_BOTH, 10)
    assert [(hit.number, hit.part) for hit in hits] == [(hit.number, hit.part) for hit in before]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in before], abs=1e-6)
    await again.upsert(_SMALL[:1])
    assert await again.count() == 3


@pytest.mark.parametrize(("dimensions", "model"), [(4, "minilm"), (3, "another")])
async def test_an_index_of_another_model_is_refused_until_it_is_cleared(
    backend: StoreBackend, dimensions: int, model: str
) -> None:
    store = backend.open(3)
    await store.upsert(_SMALL)
    await store.close()
    other = backend.open(dimensions, model)
    with pytest.raises(VectorsMismatch, match=r"minilm with 3 numbers.*Rebuild"):
        await other.count()
    with pytest.raises(VectorsMismatch):
        await other.search((1.0,) * dimensions, 1)
    await other.clear()
    assert await other.count() == 0
    await other.upsert((replace(_SMALL[0], vector=(1.0,) * dimensions),))
    assert await other.numbers() == {1}


async def test_vectors_that_are_none_are_refused_and_nothing_is_stored(backend: StoreBackend) -> None:
    store = backend.open(3)
    with pytest.raises(VectorsMismatch, match="3 numbers"):
        await store.search((1.0, 2.0), 10)
    for bad in ((0.0, 0.0, 0.0), (float("nan"), 0.0, 0.0), (float("inf"), 0.0, 0.0)):
        with pytest.raises(VectorUnusable, match="direction"):
            await store.upsert((_SMALL[0], replace(_SMALL[1], vector=bad)))
        with pytest.raises(VectorUnusable):
            await store.search(bad, 10)
    first = _SMALL[0]
    ranges = (replace(first, number=-1), replace(first, at=float("inf")), replace(first, part=MAX_PARTS))
    for wrong in (*ranges, replace(first, number=2**59)):
        with pytest.raises(ValueError, match="range"):
            await store.upsert((wrong,))
    assert await store.count() == 0


async def test_a_cancelled_search_leaves_the_store_usable(backend: StoreBackend) -> None:
    store = backend.open()
    for _ in range(5):
        search = asyncio.get_running_loop().create_task(store.search((1.0,) * DIMENSIONS, 10))
        await asyncio.sleep(0)
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
    await store.upsert([point(1, (1.0,) * DIMENSIONS)])
    assert [hit.number for hit in await store.search((1.0,) * DIMENSIONS, 10)] == [1]


async def test_searches_changes_and_counts_may_run_at_once(backend: StoreBackend) -> None:
    store, clusters = backend.open(), Clusters(3)
    async with asyncio.TaskGroup() as group:
        for part in range(8):
            group.create_task(store.upsert(list(clusters.points(100, 100 * part))))
            group.create_task(store.search(clusters.vector(), 10))
            group.create_task(store.delete(range(800, 900)))
            group.create_task(store.count())
        group.create_task(store.optimise())
    assert await store.numbers() == set(range(800))


async def test_clearing_empties_the_store(backend: StoreBackend) -> None:
    store = backend.open(3)
    await store.clear()
    await store.upsert(_SMALL)
    await store.clear()
    assert await store.count() == 0
    await store.upsert(_SMALL)
    assert await store.count() == 3


async def test_a_closed_store_stays_closed(backend: StoreBackend) -> None:
    store = backend.open(3)
    await store.close()
    await store.close()
    for call in (store.count(), store.clear(), store.search(_NORTH, 1)):
        with pytest.raises(VectorsError, match="closed"):
            await call
