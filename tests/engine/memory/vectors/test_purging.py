"""Vectors of deleted points in the bytes of the index on this machine: gone after purging, also after kills."""

import asyncio
import os
import random
import shutil
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import pytest

from errand.engine.memory.vectors.base import VectorsDamaged, VectorsError, VectorsMismatch
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from tests.support.processes import until
from tests.support.vector_bytes import codes_of, exact_vector, files_with, forms_of
from tests.support.vectors import DIMENSIONS, point

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")

_SECRET = exact_vector(10_000_001)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[EmbeddedVectors]:
    vectors = EmbeddedVectors(tmp_path / "vectors", DIMENSIONS, "minilm")
    yield vectors
    await vectors.close()


async def _fill(store: EmbeddedVectors, count: int, *, optimised: bool = False) -> None:
    """Store points, of which the one in the middle has the vector that is looked for."""
    await store.upsert([point(number, exact_vector(number)) for number in range(count)])
    await store.upsert([point(count // 2, _SECRET)])
    if optimised:
        await store.optimise()


async def _kill(store: EmbeddedVectors) -> None:
    assert store.pid is not None
    os.kill(store.pid, signal.SIGKILL)
    await until(lambda: store.pid is None)


@pytest.mark.parametrize("count", [1, 2, 100, 2_000])
@pytest.mark.parametrize("optimised", [False, True])
async def test_nothing_is_left_of_a_deleted_vector(
    store: EmbeddedVectors, tmp_path: Path, count: int, optimised: bool
) -> None:
    await _fill(store, count, optimised=optimised)
    needles = (*forms_of(_SECRET), *codes_of(tmp_path, _SECRET))
    assert len(needles) == 5 + (optimised and count == 2_000)
    await store.delete((count // 2,))
    assert files_with(tmp_path, needles), "the test looks for the wrong bytes"
    assert await store.has_remains()
    await store.purge()
    assert files_with(tmp_path, needles) == []
    assert not await store.has_remains()
    assert await store.numbers() == set(range(count)) - {count // 2}
    hits = await store.search(exact_vector(0), 1)
    assert [hit.number for hit in hits] == ([0] if count > 1 else [])


async def test_a_vector_that_was_replaced_goes_with_its_entry(store: EmbeddedVectors, tmp_path: Path) -> None:
    await _fill(store, 2_000, optimised=True)
    await store.upsert([point(1_000, exact_vector(10_000_002))])
    await store.delete((1_000,))
    await store.purge()
    assert files_with(tmp_path, (*forms_of(_SECRET), *forms_of(exact_vector(10_000_002)))) == []


async def test_a_store_that_nothing_was_deleted_from_has_no_remains(store: EmbeddedVectors) -> None:
    assert not await store.has_remains()
    assert store.pid is None
    await store.upsert([point(number, exact_vector(number)) for number in range(10)])
    await store.upsert([point(3, exact_vector(3))])
    await store.delete((99,))
    assert not await store.has_remains()


async def test_what_was_deleted_before_is_purged_after_it_is_opened_again(
    store: EmbeddedVectors, tmp_path: Path
) -> None:
    await _fill(store, 100)
    await store.delete((50,))
    await store.close()
    again = EmbeddedVectors(tmp_path / "vectors", DIMENSIONS, "minilm")
    assert await again.has_remains()
    await again.purge()
    assert not await again.has_remains()
    assert files_with(tmp_path, forms_of(_SECRET)) == []
    assert await again.count() == 99
    await again.close()


async def test_an_index_of_before_is_taken_for_one_with_remains(store: EmbeddedVectors, tmp_path: Path) -> None:
    await _fill(store, 10)
    await store.close()
    (tmp_path / "vectors" / "purged").unlink()
    again = EmbeddedVectors(tmp_path / "vectors", DIMENSIONS, "minilm")
    assert await again.has_remains()
    await again.purge()
    assert await again.count() == 10
    await again.close()


async def test_a_process_that_is_killed_while_it_purges_leaves_nothing_behind(
    store: EmbeddedVectors, tmp_path: Path
) -> None:
    """The delays of the kills differ, so that they come before, in and after the parts of the work."""
    source = random.Random(8)
    await _fill(store, 2_000, optimised=True)
    needles = [*forms_of(_SECRET), *codes_of(tmp_path, _SECRET)]
    for deleted in (1_000, *range(10)):
        needles += forms_of(exact_vector(deleted)) if deleted != 1_000 else ()
        await store.delete((deleted,))
        purging = asyncio.create_task(store.purge())
        await asyncio.sleep(source.uniform(0.0, 0.6))
        await _kill(store)
        with suppress(VectorsError):  # unless it was done before
            await purging
    await store.purge()
    assert files_with(tmp_path, needles) == []
    assert await store.numbers() == set(range(10, 2_000)) - {1_000}
    assert len(list((tmp_path / "vectors" / "shard").glob("temp_segments/*"))) == 0


async def test_what_is_stored_after_purging_survives_a_kill(store: EmbeddedVectors) -> None:
    await _fill(store, 100)
    await store.delete((50,))
    await store.purge()
    await store.upsert([point(number, exact_vector(number)) for number in range(200, 300)])
    await _kill(store)
    assert await store.numbers() == {*range(100), *range(200, 300)} - {50}


async def test_clearing_leaves_nothing_of_another_model(store: EmbeddedVectors, tmp_path: Path) -> None:
    await _fill(store, 2_000, optimised=True)
    needles = (*forms_of(_SECRET), *codes_of(tmp_path, _SECRET))
    await store.close()
    other = EmbeddedVectors(tmp_path / "vectors", DIMENSIONS, "another")
    assert await other.has_remains()
    with pytest.raises(VectorsMismatch):
        await other.purge()
    await other.clear()
    assert not await other.has_remains()
    assert files_with(tmp_path, needles) == []
    await other.close()


async def test_a_half_cleared_index_has_remains(store: EmbeddedVectors, tmp_path: Path) -> None:
    await _fill(store, 10)
    await store.close()
    (tmp_path / "vectors" / "index.json").unlink()
    again = EmbeddedVectors(tmp_path / "vectors", DIMENSIONS, "minilm")
    assert await again.has_remains()
    with pytest.raises(VectorsDamaged):
        await again.purge()
    shutil.rmtree(tmp_path / "vectors" / "shard")
    assert not await again.has_remains()
    await again.close()
