"""Facts are merged into one also when that equals one of them, as the engine compares them."""

from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from errand.client.connection import Connection
from errand.client.errors import CallError
from errand.client.memory_editing import merge_facts
from errand.protocol.memory import MEMORY_FACTS, MEMORY_PIN, Fact, MemoryFactsParams, MemoryPinParams
from tests.support.engine_server import EngineServer


@pytest.fixture
async def connection(engine: EngineServer) -> AsyncGenerator[Connection]:
    connection = Connection(engine.endpoint, "test")
    await connection.open()
    yield connection
    await connection.close()


async def pinned(connection: Connection, params: MemoryPinParams) -> Fact:
    return (await connection.call(MEMORY_PIN, params)).fact


async def texts(connection: Connection) -> list[tuple[str, str]]:
    return [(fact.text, fact.folder) for fact in (await connection.call(MEMORY_FACTS, MemoryFactsParams())).facts]


@pytest.mark.parametrize("text", ["Use ruff.", "use Ruff.", " Use  ruff.\n"])
async def test_two_facts_become_the_second_one_however_it_is_typed(connection: Connection, text: str) -> None:
    tabs = await pinned(connection, MemoryPinParams(new_id="tabs", text="Use tabs."))
    ruff = await pinned(connection, MemoryPinParams(new_id="ruff", text="Use ruff."))
    before, after = await merge_facts(connection, (tabs, ruff), MemoryPinParams(text=text))
    assert (before, after.id) == (ruff, ruff.id)
    assert await texts(connection) == [(" ".join(text.split()), "")]


@pytest.mark.parametrize("kept", [0, 1])
async def test_equal_texts_of_two_scopes_are_merged_into_either(
    connection: Connection, tmp_path: Path, kept: int
) -> None:
    changes = (
        MemoryPinParams(text="Use tabs.", scope="always"),
        MemoryPinParams(text="Use tabs.", scope="folder", folder=str(tmp_path)),
    )
    facts = [
        await pinned(connection, msgspec.structs.replace(change, new_id=f"fact_{number}"))
        for number, change in enumerate(changes)
    ]
    await merge_facts(connection, facts, changes[kept])
    assert await texts(connection) == [(facts[kept].text, facts[kept].folder)]


async def test_a_merge_that_equals_a_third_fact_changes_nothing(connection: Connection) -> None:
    facts = [await pinned(connection, MemoryPinParams(new_id=text[0], text=text)) for text in ("a.", "b.", "c.")]
    with pytest.raises(CallError, match="There is the same fact already"):
        await merge_facts(connection, facts[:2], MemoryPinParams(text="C."))
    assert [text for text, _ in await texts(connection)] == ["a.", "b.", "c."]
