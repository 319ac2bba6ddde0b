"""The simple embedding model that comes with Errand: its real table, before, beside and after the better one."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.embedding_models import ENGLISH, SIMPLE, simple_model_folder
from errand.engine.memory.passages import vectors_of
from errand.engine.tools.results import ToolError
from errand.protocol.memory import MemorySearchParams, MemoryStatsResult
from tests.engine.memory.test_memory import said
from tests.engine.memory.test_vectors_removed import noted
from tests.support.engine_parts import EngineParts, engine_parts, remembered
from tests.support.limits import WAIT_LIMIT_S
from tests.support.vectors import cosine

SAID = ("The feline slept on the sofa all day", "Interest rates rose by half a percent", "The stove is out of gas")
QUESTION = "which couch did our cat sleep upon?"


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the real table. Engines of the test use it."""
    monkeypatch.delenv("ERRAND_SIMPLE_MODEL")
    folder = simple_model_folder()
    if folder is None:
        pytest.skip("wordllama is not installed, or its process cannot be started here")
    return folder


@pytest.fixture
async def embedder(tmp_path: Path, table: Path) -> AsyncGenerator[Embedder]:
    new_embedder = Embedder(lambda: tmp_path / "none", simple_model=table)
    yield new_embedder
    await new_embedder.close()


async def settled(engine: EngineParts, model: str) -> MemoryStatsResult:
    """Wait until every entry has a vector of the model; return the numbers."""
    await remembered(engine)
    about = engine.services.paths.memory / "vectors" / "index.json"
    async with asyncio.timeout(WAIT_LIMIT_S):
        while True:
            stats = await engine.services.memory.stats()
            if (
                (stats.to_embed, stats.to_remove) == (0, 0)
                and stats.vectors == stats.entries
                and _model(about) == model
            ):
                return stats
            await asyncio.sleep(0.05)


def _model(about: Path) -> str:
    try:
        return json.loads(about.read_bytes())["model"]
    except (OSError, ValueError):  # not there yet
        return ""


async def found(engine: EngineParts, question: str) -> tuple[str, str]:
    """Return the first hit, and the remark."""
    params = MemorySearchParams(text=question, limit=1)
    result = await engine.services.memory.reader.search(params, CancelSignal())
    return result.hits[0].text, result.remark


async def test_texts_that_say_the_same_are_near_and_the_engine_loads_nothing(embedder: Embedder) -> None:
    assert embedder.kind == SIMPLE
    cat, feline, rates, empty = await embedder.embed((QUESTION, *SAID[:2], ""), CancelSignal())
    assert {len(vector) for vector in (cat, feline, rates, empty)} == {SIMPLE.dimensions}
    assert [sum(x * x for x in vector) for vector in (cat, rates, empty)] == pytest.approx([1.0] * 3, abs=1e-3)
    assert cosine(cat, feline) > cosine(cat, rates) + 0.1
    assert "wordllama" not in sys.modules and "tokenizers" not in sys.modules


async def test_a_text_has_the_same_vector_alone_and_among_others(embedder: Embedder) -> None:
    texts = ("boat", "A longer text about the boats of the harbour. " * 60, "汽船", "\ud800 \0 \U0001f600")
    among = await embedder.embed(texts, CancelSignal())
    alone = [(await embedder.embed((text,), CancelSignal()))[0] for text in texts]
    assert among == tuple(alone)


async def test_a_table_that_is_damaged_is_said(tmp_path: Path, table: Path) -> None:
    for name in SIMPLE.files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((table / name).read_bytes()[:10_000])
    embedder = Embedder(lambda: tmp_path / "none", simple_model=tmp_path)
    with pytest.raises(ToolError, match="cannot be loaded"):
        await embedder.embed(("boat",), CancelSignal())
    await embedder.close()


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERRAND_SIMPLE_MODEL", "off")
    assert simple_model_folder() is None


async def test_without_the_download_meanings_are_searched_and_given(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        for text in SAID:
            await said(engine, text)
        stats = await settled(engine, vectors_of(SIMPLE))
        assert (stats.model.status, stats.model.has_simple, stats.problem) == ("missing", True, "")
        assert await found(engine, QUESTION) == (SAID[0], "")


async def test_a_setting_that_names_a_missing_folder_is_said_with_each_search(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        engine.services.settings.set("embedding_folder", str(tmp_path / "gone"))
        await said(engine, SAID[0])
        await settled(engine, vectors_of(SIMPLE))
        text, remark = await found(engine, QUESTION)
        assert text == SAID[0] and remark.startswith("Meanings were searched by the simple model. The setting")


async def test_a_model_that_comes_and_goes_makes_the_vectors_anew_while_the_engine_runs(
    tmp_path: Path, model: Path
) -> None:
    async with engine_parts(tmp_path / "home", noted()) as engine:
        for text in SAID:
            await said(engine, text)
        await settled(engine, vectors_of(SIMPLE))
        engine.services.settings.set("embedding_folder", str(model))
        engine.services.memory.rules_changed()
        stats = await settled(engine, vectors_of(ENGLISH))
        assert (stats.model.status, stats.vectors, stats.problem) == ("ready", 6, "")
        assert await found(engine, "the stove gas") == (SAID[2], "")
        await asyncio.to_thread((model / "model.onnx").unlink)
        text, _ = await found(engine, "the stove")  # this search notices, and words serve until all is made
        assert text == SAID[2]
        stats = await settled(engine, vectors_of(SIMPLE))
        assert (stats.model.status, stats.vectors, stats.problem) == ("missing", 6, "")
        text, remark = await found(engine, QUESTION)
        assert text == SAID[0] and "lacks model.onnx" in remark


async def test_an_engine_that_starts_with_the_model_replaces_what_the_simple_one_made(
    tmp_path: Path, model: Path
) -> None:
    async with engine_parts(tmp_path / "home", noted()) as engine:
        await said(engine, SAID[0])
        await settled(engine, vectors_of(SIMPLE))
        engine.services.settings.set("embedding_folder", str(model))
    async with engine_parts(tmp_path / "home", noted()) as engine:
        assert (await settled(engine, vectors_of(ENGLISH))).vectors == 2
