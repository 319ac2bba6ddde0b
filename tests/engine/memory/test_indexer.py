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


async def test_a_conversation_that_moves_while_it_is_indexed_moves_whole(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: Reply(text="Noted."))) as engine:
        conversation_id = await said(engine, "The kettle leaks")
        database, log = engine.services.database, engine.services.log
        old = await database.conversations.get(conversation_id)
        assert old is not None
        moved = msgspec.structs.replace(old, workspace=str(tmp_path / "other"))
        database.journal.put(conversation_rows.save(moved))
        await announce(engine, [a_node("node_late", conversation_id, "The roof is new")], "complete")
        await remembered(engine)  # the index has read where it is now, before it is told
        log.publish(ConversationUpdate(conversation=moved))
        await log.flush()
        await remembered(engine)
        assert {entry.folder for entry in await entries(engine)} == {moved.workspace}


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
