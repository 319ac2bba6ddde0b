"""The index of vectors on this machine when things go wrong: kills, damage, links, a second process."""

import asyncio
import os
import random
import shutil
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from errand.engine.memory.vectors import embedded
from errand.engine.memory.vectors.base import (
    VectorsDamaged,
    VectorsError,
    VectorsInUse,
    VectorsUnavailable,
    VectorsUntrusted,
)
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from tests.support.processes import is_alive, until
from tests.support.vectors import DIMENSIONS, Clusters

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")

_COUNT = 1_500


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[EmbeddedVectors]:
    vectors = EmbeddedVectors(tmp_path / "vectors", DIMENSIONS, "minilm")
    yield vectors
    await vectors.close()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of 1,500 points, optimised."""
    folder = tmp_path_factory.mktemp("full") / "vectors"

    async def fill() -> None:
        store = EmbeddedVectors(folder, DIMENSIONS, "minilm")
        await store.upsert(list(Clusters(5).points(_COUNT)))
        await store.optimise()
        await store.close()

    asyncio.run(fill())
    return folder


async def test_nothing_acknowledged_is_lost_when_its_process_is_killed(store: EmbeddedVectors) -> None:
    clusters = Clusters(6)
    for first in (0, 300):
        await store.upsert(list(clusters.points(300, first)))
        assert store.pid is not None
        os.kill(store.pid, signal.SIGKILL)
        await until(lambda: store.pid is None)
    assert await store.numbers() == set(range(600))
    assert len(await store.search(clusters.vector(), 10)) == 10


async def test_a_call_whose_process_is_killed_fails_and_the_next_one_starts_another(store: EmbeddedVectors) -> None:
    await store.count()
    assert store.pid is not None
    os.kill(store.pid, signal.SIGSTOP)  # it answers nothing before it is killed
    writing = asyncio.get_running_loop().create_task(store.upsert(list(Clusters(7).points(2_000))))
    await asyncio.sleep(0)
    os.kill(store.pid, signal.SIGKILL)
    with pytest.raises(VectorsUnavailable, match="Try again"):
        await writing
    assert await store.count() <= 2_000


async def test_nothing_acknowledged_is_lost_when_the_engine_is_killed(store: EmbeddedVectors, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "tests.engine.memory.vectors.writer", str(tmp_path / "vectors"))
    writer = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert writer.stdout is not None
    acknowledged, child = 0, 0
    while acknowledged < 500:
        acknowledged, child = map(int, (await writer.stdout.readline()).split())
    writer.kill()
    await writer.wait()
    numbers = await store.numbers()  # waits for the process of the killed engine
    assert numbers >= set(range(acknowledged))
    assert not is_alive(child)


async def test_a_second_process_is_refused_and_may_open_the_index_later(store: EmbeddedVectors, tmp_path: Path) -> None:
    await store.count()
    other = EmbeddedVectors(tmp_path / "vectors", DIMENSIONS, "minilm")
    with pytest.raises(VectorsInUse, match="other Errand"):
        await other.count()
    await store.close()
    assert await other.count() == 0
    await other.close()


async def test_the_process_ends_when_it_is_not_used_and_the_next_call_starts_another(tmp_path: Path) -> None:
    store = EmbeddedVectors(tmp_path / "vectors", DIMENSIONS, "minilm", idle_s=0.05)
    await store.upsert(list(Clusters(8).points(10)))
    await until(lambda: store.pid is None)
    assert await store.count() == 10
    await store.close()
    assert store.pid is None


async def test_a_first_call_that_is_cancelled_leaves_nothing_running(store: EmbeddedVectors) -> None:
    counting = asyncio.get_running_loop().create_task(store.count())
    await asyncio.sleep(0.01)
    counting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await counting
    await store.close()
    assert store.pid is None


@pytest.mark.parametrize("damage", ["cut", "emptied", "garbage", "removed"])
async def test_a_damaged_index_says_so_or_works_and_is_made_anew(
    full: Path, store: EmbeddedVectors, tmp_path: Path, damage: str
) -> None:
    """Every tenth file of the index is damaged; no call hangs, ends the test or raises anything else."""
    clusters, folder = Clusters(9), tmp_path / "vectors"
    shutil.copytree(full, folder)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "lock"]
    for path in files[::10]:
        _damage(path, damage)
    with pytest.raises(VectorsDamaged, match="Rebuild"):
        for _ in range(3):
            await store.count()
            await store.search(clusters.vector(), 10)
            await store.numbers()
            await store.upsert(list(clusters.points(10)))
            await store.optimise()
    await store.clear()
    await store.upsert(list(clusters.points(100)))
    assert await store.numbers() == set(range(100))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"dimensions": 384}', "null"])
async def test_an_index_whose_description_is_damaged_is_refused(
    full: Path, store: EmbeddedVectors, tmp_path: Path, text: str
) -> None:
    shutil.copytree(full, tmp_path / "vectors")
    (tmp_path / "vectors" / "index.json").write_text(text, encoding="utf-8")
    with pytest.raises(VectorsError, match="Rebuild"):
        await store.count()
    await store.clear()
    assert await store.count() == 0


async def test_a_half_written_index_is_refused(full: Path, store: EmbeddedVectors, tmp_path: Path) -> None:
    shutil.copytree(full, tmp_path / "vectors")
    (tmp_path / "vectors" / "index.json").unlink()
    with pytest.raises(VectorsDamaged, match="half written"):
        await store.count()


async def test_a_folder_that_others_may_change_is_never_opened(store: EmbeddedVectors, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "vectors", tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)
    for call in (store.count(), store.clear()):
        with pytest.raises(VectorsUntrusted, match="link"):
            await call
    assert not list(elsewhere.iterdir())
    folder.unlink()
    folder.mkdir()
    (folder / "shard").symlink_to(elsewhere)
    with pytest.raises(VectorsUntrusted, match="link"):
        await store.count()
    (folder / "shard").unlink()
    folder.chmod(0o777)
    with pytest.raises(VectorsUntrusted, match="Everybody"):
        await store.count()
    folder.chmod(0o700)
    assert await store.count() == 0


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root gives files away")
async def test_a_folder_of_another_user_is_never_opened(store: EmbeddedVectors, tmp_path: Path) -> None:
    (tmp_path / "vectors").mkdir()
    os.chown(tmp_path / "vectors", 65534, 65534)
    with pytest.raises(VectorsUntrusted, match="another user"):
        await store.count()


async def test_a_file_in_the_place_of_the_folder_is_told(store: EmbeddedVectors, tmp_path: Path) -> None:
    (tmp_path / "vectors").write_text("x", encoding="utf-8")
    with pytest.raises(VectorsUnavailable, match="cannot be used"):
        await store.count()


async def test_without_the_package_the_text_says_where_it_is_installed(
    store: EmbeddedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_PACKAGE", "qdrant_edge_missing")
    with pytest.raises(VectorsUnavailable, match="It comes with Errand on Linux"):
        await store.count()


async def test_the_library_is_never_loaded_into_the_engine(
    store: EmbeddedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "qdrant_edge", raising=False)  # another test may have imported it
    await store.count()
    assert "qdrant_edge" not in sys.modules


def _damage(path: Path, how: str) -> None:
    size = path.stat().st_size
    match how:
        case "cut":
            os.truncate(path, size // 2)
        case "emptied":
            os.truncate(path, 0)
        case "garbage":
            path.write_bytes(random.Random(size).randbytes(min(size, 1_000_000)))
        case _:
            path.unlink()
