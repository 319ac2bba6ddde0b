"""Vectors and texts of a whole engine in the bytes of its data folder: gone after forgetting, pruning, kills."""

import asyncio
import sqlite3
import sys
from array import array
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH, SIMPLE, simple_model_folder
from errand.engine.memory.entries import MemoryEntry
from errand.engine.memory.passages import embedded_texts, vectors_of
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.engine.tools.context import Vector
from errand.protocol.memory import MemoryPruneParams
from tests.engine.memory.test_memory import entries, said
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import ModelServer, Reply
from tests.support.vector_bytes import files_with, forms_of
from tests.support.vectors import cosine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process is given a socket as its input")

_SECRET = "The zeppelin of the walrus hides in Ravenglass"
_OTHERS = ("The stove is out of gas", "Interest rates rose by half a percent", "The fence is green")


@pytest.fixture(params=("the model of a folder", "the simple model"))
def embedding(request: pytest.FixtureRequest, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the setting; the simple model serves where it has no model."""
    if request.param == "the model of a folder":
        return model
    monkeypatch.delenv("ERRAND_SIMPLE_MODEL")
    if simple_model_folder() is None:
        pytest.skip("wordllama is not installed")
    (model / "model.onnx").unlink()
    return model


def noted() -> ModelServer:
    return ModelServer(answer=lambda request: Reply(text="Noted."))


async def embedded(engine: EngineParts, model: Path) -> None:
    """Wait until all entries have their vectors, and nothing waits to be removed."""
    engine.services.settings.set("embedding_folder", str(model))
    engine.services.memory.rules_changed()
    await settled(engine)


async def settled(engine: EngineParts) -> None:
    async with asyncio.timeout(WAIT_LIMIT_S):
        while True:
            stats = await engine.services.memory.stats()
            if (stats.to_index, stats.to_embed, stats.to_remove) == (0, 0, 0):
                return
            await asyncio.sleep(0.05)


async def settled_without_model(engine: EngineParts) -> None:
    async with asyncio.timeout(WAIT_LIMIT_S):
        while (await engine.services.memory.stats()).to_remove:  # noqa: ASYNC110 -- it sets no event
            await asyncio.sleep(0.05)


async def needles(engine: EngineParts, model: Path, home: Path) -> tuple[str, tuple[bytes, ...]]:
    """Return the node of the secret, and the bytes of its text and of its vector as the index stores it."""
    (entry,) = [item for item in await entries(engine) if item.text == _SECRET]
    embedder = Embedder(lambda: model, simple_model=simple_model_folder())
    key = entry.number, entry.node_id, entry.conversation_id, entry.speaker, entry.role
    stored_entry = MemoryEntry(*key, entry.at, entry.text, entry.folder)
    (vector,) = await embedder.embed(tuple(embedded_texts(stored_entry)), CancelSignal())
    await embedder.close()
    stored = nearest_stored(home / "data" / "memory" / "vectors", vector)
    assert cosine(vector, stored) > 0.9999
    traces = (*forms_of(stored), *forms_of(vector), _SECRET.encode())
    assert len(files_with(home / "data", traces)) >= 2, "the test looks for the wrong bytes"
    return entry.node_id, traces


def nearest_stored(folder: Path, vector: Vector) -> Vector:
    """Return the stored vector that is nearest, with the rounding of the index."""
    size = 4 * len(vector)
    stored: list[Vector] = []
    for file in folder.rglob("chunk_*.mmap"):
        data = file.read_bytes()[: 1_000 * size]
        for start in range(0, len(data) - size + 1, size):
            numbers = array("f", data[start : start + size])
            if any(numbers):
                stored.append(tuple(numbers))
    return max(stored, key=lambda candidate: cosine(vector, candidate))


async def test_no_file_has_the_text_or_the_vector_of_what_was_forgotten(tmp_path: Path, embedding: Path) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        for text in (*_OTHERS, _SECRET):
            await said(engine, text)
        await embedded(engine, embedding)
        node_id, traces = await needles(engine, embedding, tmp_path)
        result = await engine.services.forgetter.forget((node_id,), "a test")
        assert (result.entries, result.to_remove) == (1, 0)
        assert files_with(tmp_path / "data", traces) == []
    async with engine_parts(tmp_path, noted()) as engine:
        await settled(engine)
        assert (await engine.services.memory.stats()).vectors == 7
    assert files_with(tmp_path / "data", traces) == []


async def test_no_file_has_the_vector_of_what_was_pruned(tmp_path: Path, embedding: Path) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        for text in (_SECRET, *_OTHERS):
            await said(engine, text)
        await embedded(engine, embedding)
        _, traces = await needles(engine, embedding, tmp_path)
        pruned = await engine.services.memory.prune(MemoryPruneParams(keep=2), "a test")
        assert (pruned.removed, pruned.to_remove) == (6, 0)
        assert files_with(tmp_path / "data" / "memory" / "vectors", traces) == []


async def test_a_kill_before_the_vectors_are_deleted_is_made_up_for_by_the_next_start(
    tmp_path: Path, embedding: Path
) -> None:
    killed = tmp_path / "killed"
    async with engine_parts(tmp_path, noted()) as engine:
        for text in (_SECRET, *_OTHERS):
            await said(engine, text)
        await embedded(engine, embedding)
        node_id, traces = await needles(engine, embedding, tmp_path)
        process = process_of_vectors()
        process.suspend()  # it removes nothing
        forgetting = asyncio.create_task(engine.services.forgetter.forget((node_id,), "a test"))
        async with asyncio.timeout(WAIT_LIMIT_S):
            while not (await engine.services.memory.stats()).to_remove:  # noqa: ASYNC110 -- it sets no event
                await asyncio.sleep(0.02)
        crash(engine, killed)
        process.resume()
        await forgetting
    assert files_with(killed / "data", traces)
    async with engine_parts(killed, noted()) as engine:
        await settled(engine)
        assert files_with(killed / "data" / "memory", traces) == []
        assert (await engine.services.memory.stats()).vectors == 7


async def test_a_kill_before_the_vectors_leave_the_disk_is_made_up_for_by_the_next_start(
    tmp_path: Path, embedding: Path
) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        for text in (_SECRET, *_OTHERS):
            await said(engine, text)
        await embedded(engine, embedding)
        _, traces = await needles(engine, embedding, tmp_path)
    kind = ENGLISH if (embedding / "model.onnx").is_file() else SIMPLE
    vectors = EmbeddedVectors(tmp_path / "data" / "memory" / "vectors", kind.dimensions, vectors_of(kind))
    await vectors.delete(tuple(await vectors.numbers()))
    await vectors.close()
    with closing(sqlite3.connect(tmp_path / "data" / "memory" / "memory.db")) as connection:
        connection.execute("UPDATE entries SET vector = 'pruned'")
        connection.commit()
    assert files_with(tmp_path / "data" / "memory" / "vectors", traces)
    async with engine_parts(tmp_path, noted()) as engine:
        await settled(engine)
        assert files_with(tmp_path / "data" / "memory" / "vectors", traces) == []


async def test_vectors_of_another_model_leave_the_disk_at_the_next_start(tmp_path: Path, model: Path) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        for text in (_SECRET, *_OTHERS):
            await said(engine, text)
        await embedded(engine, model)
        _, traces = await needles(engine, model, tmp_path)
    folder = tmp_path / "data" / "memory" / "vectors"
    (folder / "index.json").write_text('{"dimensions": 384, "model": "another"}', encoding="utf-8")
    (model / "model.onnx").rename(model / "kept.onnx")  # there is none to make new ones
    async with engine_parts(tmp_path, noted()) as engine:
        await settled_without_model(engine)
        assert files_with(folder, traces) == []


def process_of_vectors() -> psutil.Process:
    children = psutil.Process().children(recursive=True)
    return next(child for child in children if any(part.endswith("embedded_child.py") for part in child.cmdline()))
