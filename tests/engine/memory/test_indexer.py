"""The filling of memory's index: more is said at once than it takes in one step, or changes while it is read."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import pytest

from errand.engine.memory import indexer
from errand.engine.memory.index import WordIndex
from errand.engine.memory.index_thread import IndexThread
from errand.engine.storage.records import conversations as conversation_rows
from errand.engine.storage.records import nodes as node_rows
from errand.protocol.conversations import Node
from errand.protocol.events import ConversationUpdate, TaskMessage
from errand.protocol.memory import MemoryListParams
from tests.engine.memory.test_memory import a_node, entries, said
from tests.support.engine_parts import EngineParts, engine_parts, remembered
from tests.support.model_server import ModelServer, Reply

T = TypeVar("T")


def module_of(work: object) -> str:
    return str(getattr(work, "func", work).__module__)


async def announce(engine: EngineParts, nodes: Sequence[Node], status: Literal["streaming", "complete"]) -> None:
    """Store nodes and publish them, as tasks do."""
    for node in nodes:
        node = msgspec.structs.replace(node, status=status)
        engine.services.database.journal.put(node_rows.save(node))
        engine.services.log.publish(TaskMessage(node=node))
    await engine.services.log.flush()


def other_folder(tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    return tmp_path / "other"


async def folders(engine: EngineParts) -> dict[str, str]:
    """The folder of each text that a person said."""
    return {entry.text: entry.folder for entry in await entries(engine) if entry.role == "user"}


async def test_a_backlog_of_new_conversations_is_taken_in_a_few_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    is_free = asyncio.Event()
    run_now = IndexThread.run

    async def run(index: IndexThread, work: Callable[[WordIndex], T]) -> T:
        steps.append(module_of(work))
        await is_free.wait()
        return await run_now(index, work)

    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        like = await engine.services.database.conversations.get(await said(engine, "The kettle leaks"))
        assert like is not None
        monkeypatch.setattr(IndexThread, "run", run)
        new = [msgspec.structs.replace(like, id=f"conversation_{number}") for number in range(110)]
        for new_conversation in new:
            engine.services.database.journal.put(conversation_rows.save(new_conversation))
            engine.services.log.publish(ConversationUpdate(conversation=new_conversation))
        nodes = [
            a_node(f"{new_conversation.id}_{at}", new_conversation.id, "The roof is new")
            for new_conversation in new
            for at in range(4)
        ]
        await announce(engine, nodes, "complete")
        is_free.set()
        await remembered(engine)
        conversation_ids = [entry.conversation_id for entry in await entries(engine)]
    assert {new_conversation.id: conversation_ids.count(new_conversation.id) for new_conversation in new} == {
        new_conversation.id: 4 for new_conversation in new
    }
    assert steps.count(indexer.__name__) <= 40


async def test_many_messages_that_end_at_once_are_all_indexed(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        conversation = await said(engine, "The kettle leaks")
        nodes = [a_node(f"node_{at}", conversation, f"The roof number {at} is new") for at in range(120)]
        await announce(engine, nodes, "streaming")
        await said(engine, "The fence is green")  # the index has come past them now
        assert len(await entries(engine)) == 4
        await announce(engine, nodes, "complete")
        await remembered(engine)
        texts = {entry.text for entry in await entries(engine)}
    assert {f"The roof number {at} is new" for at in range(120)} <= texts


async def test_entries_stay_in_the_folder_that_they_were_said_in(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        conversation_id = await said(engine, "The kettle leaks")
        database, log = engine.services.database, engine.services.log
        old = await database.conversations.get(conversation_id)
        assert old is not None
        moved = msgspec.structs.replace(old, workspace=str(other_folder(tmp_path)))
        log.publish(ConversationUpdate(conversation=moved))
        await log.flush()
        await said(engine, "The roof is new", conversation_id)
        before = await folders(engine)
        await engine.services.memory.rebuild("test")
        await remembered(engine)
        assert await folders(engine) == before
    assert before == {"The kettle leaks": old.workspace, "The roof is new": moved.workspace}


async def test_an_imported_conversation_keeps_its_folder_that_is_not_here(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        conversation_id = await said(engine, "The kettle leaks")
        database, log = engine.services.database, engine.services.log
        begun = await database.conversations.get(conversation_id)
        assert begun is not None
        own = engine.services.paths.workspaces / "conv_imported"
        own.mkdir(parents=True)
        imported = msgspec.structs.replace(
            begun, id="conv_imported", workspace=str(own), imported_folder="C:\\clients\\zwolle"
        )
        database.journal.put(conversation_rows.save(imported))
        await announce(engine, [a_node("node_imported", imported.id, "The gate is locked")], "complete")
        await remembered(engine)
        assert (await folders(engine))["The gate is locked"] == "C:\\clients\\zwolle"
        moved = msgspec.structs.replace(imported, workspace=str(tmp_path / "other"))
        log.publish(ConversationUpdate(conversation=moved))
        await log.flush()
        await remembered(engine)
        assert (await folders(engine))["The gate is locked"] == "C:\\clients\\zwolle"


async def test_what_was_said_in_a_folder_that_is_not_remembered_is_not_remembered_elsewhere(tmp_path: Path) -> None:
    other = other_folder(tmp_path)
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        settings = engine.services.settings
        settings.set("not_remembered_folders", str(engine.workspace))
        engine.services.memory.rules_changed()
        conversation_id = await said(engine, "The kettle leaks")
        old = await engine.services.database.conversations.get(conversation_id)
        assert old is not None and await folders(engine) == {}
        engine.services.log.publish(ConversationUpdate(conversation=msgspec.structs.replace(old, workspace=str(other))))
        await engine.services.log.flush()
        await said(engine, "The roof is new", conversation_id)
        assert await folders(engine) == {"The roof is new": str(other)}
        settings.set("not_remembered_folders", str(other))
        engine.services.memory.rules_changed()
        await remembered(engine)
        assert await folders(engine) == {}


async def test_a_page_of_what_is_about_to_leave_the_index_is_passed_over(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        await said(engine, "The kettle leaks")
        database = engine.services.database
        newer = await database.conversations.get(await said(engine, "The roof is new"))
        assert newer is not None
        database.journal.put(conversation_rows.save(msgspec.structs.replace(newer, remembers=False)))
        await database.journal.flush()
        page = await engine.services.memory.reader.page(MemoryListParams(limit=2))
    assert ([item.text for item in page.items], page.has_more) == (["Noted.", "The kettle leaks"], False)
