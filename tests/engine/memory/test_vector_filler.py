"""Vectors of a whole engine with the real model: made in the background, removed with their entries, and healed."""

import asyncio
import shutil
import sqlite3
from pathlib import Path

import psutil
import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.memory.embedding_models import ENGLISH
from errand.engine.memory.passages import vectors_of
from errand.engine.memory.vectors.embedded import EmbeddedVectors
from errand.protocol.memory import MemoryPruneParams, MemorySearchParams, MemorySearchResult
from tests.engine.memory.test_memory import entries, said
from tests.support.engine_parts import EngineParts, engine_parts, remembered
from tests.support.limits import WAIT_LIMIT_S
from tests.support.minilm import minilm
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import until

pytestmark = pytest.mark.skipif(minilm() is None, reason="needs the model: make model")

SAID = ("The feline slept on the sofa all day", "Interest rates rose by half a percent", "The stove is out of gas")


def noted() -> ModelServer:
    return ModelServer(answer=lambda request: Reply(text="Noted."))


async def embedded(engine: EngineParts, count: int) -> None:
    """Wait until there are so many vectors, no more to come, and all is indexed again after the new setting."""
    engine.services.settings.set("embedding_folder", str(minilm()))
    engine.services.memory.rules_changed()
    async with asyncio.timeout(WAIT_LIMIT_S):
        while True:
            stats = await engine.services.memory.stats()
            if (stats.vectors, stats.to_embed, stats.to_index) == (count, 0, 0):
                return
            await asyncio.sleep(0.05)


async def searched(engine: EngineParts, text: str) -> MemorySearchResult:
    return await engine.services.memory.reader.search(MemorySearchParams(text=text, limit=1), CancelSignal())


def children_of_memory() -> set[str]:
    """The programs of this process's children that have the model or the vectors open."""
    scripts = {Path(part).name for child in psutil.Process().children(recursive=True) for part in child.cmdline()}
    return scripts & {"embedding_child.py", "embedded_child.py"}


async def stored(home: Path) -> int:
    """Return the number of stored vectors after the engine has ended."""
    vectors = EmbeddedVectors(home / "data" / "memory" / "vectors", ENGLISH.dimensions, vectors_of(ENGLISH))
    count = await vectors.count()
    await vectors.close()
    return count


async def test_what_shares_no_word_is_found_by_its_meaning(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        for text in SAID:
            await said(engine, text)
        await embedded(engine, 6)
        search_result = await searched(engine, "where did our cat rest?")
        stats = await engine.services.memory.stats()
    assert (search_result.hits[0].text, search_result.remark) == (SAID[0], "")
    assert stats.problem == "" and stats.vector_bytes > 0 and stats.model.status == "ready"


async def test_a_model_that_rests_is_loaded_while_a_message_is_written(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        await said(engine, SAID[0])
        await embedded(engine, 2)
    async with engine_parts(tmp_path, noted()) as engine:
        await remembered(engine)
        assert children_of_memory() == set()
        engine.services.memory.warm_up()
        engine.services.memory.warm_up()
        await until(lambda: children_of_memory() == {"embedding_child.py", "embedded_child.py"})


async def test_vectors_leave_with_their_entries_and_by_pruning(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        for text in SAID:
            await said(engine, text)
        await embedded(engine, 6)
        (first, *_) = await entries(engine)
        done = await engine.services.forgetter.forget((first.node_id,), "a test")
        assert done.entries == 1
        await engine.services.memory.prune(MemoryPruneParams(keep=2), "a test")
        await said(engine, "One more")  # the filler has been there
        await embedded(engine, 4)
    assert await stored(tmp_path) == 4


@pytest.mark.parametrize(
    "damage", ["words deleted", "vectors deleted", "vectors of another index", "torn", "stored, not noted"]
)
async def test_words_and_vectors_that_do_not_fit_are_mended(tmp_path: Path, damage: str) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        for text in SAID:
            await said(engine, text)
        await embedded(engine, 6)
    memory = tmp_path / "data" / "memory"
    match damage:
        case "words deleted":
            for file in memory.glob("memory.db*"):
                file.unlink()
        case "vectors deleted":
            shutil.rmtree(memory / "vectors")
        case "vectors of another index":
            (memory / "vectors.of").write_text("another")
        case "stored, not noted":
            connection = sqlite3.connect(memory / "memory.db")
            connection.execute("UPDATE entries SET vector = 'wanted'")
            connection.commit()
            connection.close()
        case _:
            for file in (memory / "vectors").rglob("*"):
                if file.is_file():
                    file.write_bytes(b"torn" * 100)
    async with engine_parts(tmp_path, noted()) as engine:
        await searched(engine, "where did our cat rest?")
        await said(engine, "The fence is green")
        await embedded(engine, 8)
        search_result = await searched(engine, "where did our cat rest?")
    assert (search_result.hits[0].text, search_result.remark) == (SAID[0], "")
    assert await stored(tmp_path) == 8


async def test_rebuilding_makes_the_vectors_again_too(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, noted()) as engine:
        for text in SAID:
            await said(engine, text)
        await embedded(engine, 6)
        await engine.services.memory.rebuild("a test")
        await said(engine, "The fence is green")
        await embedded(engine, 8)
        search_result = await searched(engine, "where did our cat rest?")
    assert search_result.hits[0].text == SAID[0]
