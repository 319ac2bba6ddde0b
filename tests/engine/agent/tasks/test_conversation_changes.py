"""Several changes of one conversation at once: each of them holds."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.server.authentication import AccessToken, Handshake
from errand.engine.server.handlers.conversations import change
from errand.engine.server.outbox import Outbox
from errand.engine.server.session import ClientSession
from errand.protocol.agents import AgentCreateParams
from errand.protocol.conversations import Conversation, ConversationChangeParams, TurnTaking
from errand.protocol.events import TaskMessage
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import ModelServer, Reply
from tests.support.records import node
from tests.support.stored_records import on_both

NODES = tuple(f"n{number}" for number in range(40))


@asynccontextmanager
async def engine_with_conversation(tmp_path: Path) -> AsyncGenerator[tuple[EngineParts, str]]:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Done."))) as engine:
        task = await engine.start("go", approve="ask")
        await engine.watcher.end(task.id)
        for node_id in NODES:
            engine.services.log.publish(TaskMessage(node=node(node_id, conversation_id=task.conversation_id)))
        await engine.services.log.flush()
        yield engine, task.conversation_id


async def changed(engine: EngineParts, params: ConversationChangeParams) -> Conversation:
    services = engine.services
    session = ClientSession(services.log, Outbox(), Handshake(AccessToken("", lambda _: None), lambda: None))
    return (await change(services, session, params)).conversation


async def stored(engine: EngineParts, conversation_id: str) -> Conversation:
    await engine.services.log.flush()
    record = await engine.services.database.conversations.get(conversation_id)
    assert record is not None
    return record


@on_both
@pytest.mark.parametrize("gap", [0, 1, 7])
async def test_changes_of_different_fields_at_once_all_hold(tmp_path: Path, gap: int) -> None:
    async with engine_with_conversation(tmp_path) as (engine, conversation_id):
        different = (
            ConversationChangeParams(conversation_id=conversation_id, title="Renamed"),
            ConversationChangeParams(conversation_id=conversation_id, pinned=True),
            ConversationChangeParams(conversation_id=conversation_id, archived=True),
            ConversationChangeParams(conversation_id=conversation_id, network="on"),
            ConversationChangeParams(conversation_id=conversation_id, remembers=False),
            ConversationChangeParams(conversation_id=conversation_id, recalls=False),
            ConversationChangeParams(
                conversation_id=conversation_id, turn_taking=TurnTaking(rule="round_robin", limit=7)
            ),
            ConversationChangeParams(conversation_id=conversation_id, workspace=str(tmp_path)),
            ConversationChangeParams(conversation_id=conversation_id, approve="edits"),
        )
        keep = [ConversationChangeParams(conversation_id=conversation_id, keep_node_id=node_id) for node_id in NODES]
        order = [conversation_change for pair in zip(keep, different * 5, strict=False) for conversation_change in pair]
        calls: list[asyncio.Task[Conversation]] = []
        for params in order:
            calls.append(asyncio.create_task(changed(engine, params)))
            for _ in range(gap):
                await asyncio.sleep(0)
        await asyncio.gather(*calls)
        now = await stored(engine, conversation_id)
        assert sorted(now.kept) == sorted(NODES)
        assert now == msgspec.structs.replace(
            now,
            title="Renamed",
            pinned=True,
            archived=True,
            network="on",
            remembers=False,
            recalls=False,
            turn_taking=TurnTaking(rule="round_robin", limit=7),
            workspace=str(tmp_path),
            approve="edits",
        )


@on_both
async def test_a_task_that_starts_and_an_agent_that_leaves_take_no_change_back(tmp_path: Path) -> None:
    async with engine_with_conversation(tmp_path) as (engine, conversation_id):
        leaving = await engine.services.agents.create(
            AgentCreateParams(conversation_id=conversation_id, name="Bo", node_id=NODES[0])
        )
        changes = [ConversationChangeParams(conversation_id=conversation_id, keep_node_id=node_id) for node_id in NODES]
        await asyncio.gather(
            *(changed(engine, conversation_change) for conversation_change in changes[:20]),
            engine.start("more", conversation_id=conversation_id, approve=None, network="on"),
            *(changed(engine, conversation_change) for conversation_change in changes[20:30]),
            engine.services.agents.delete(leaving.id),
            engine.services.runner.modes.change(conversation_id, "edits", "me", attended=True),
            *(changed(engine, conversation_change) for conversation_change in changes[30:]),
            changed(engine, ConversationChangeParams(conversation_id=conversation_id, title="Renamed")),
        )
        now = await stored(engine, conversation_id)
        assert sorted(now.kept) == sorted(NODES)
        assert (now.title, now.approve, now.network) == ("Renamed", "edits", "on")
        assert [former.name for former in now.former] == ["Bo"]
        await engine.watcher.end((await engine.services.database.tasks.newest(1, conversation_id))[0].id)


async def test_a_refused_change_changes_nothing_and_blocks_nobody(tmp_path: Path) -> None:
    async with engine_with_conversation(tmp_path) as (engine, conversation_id):
        before = await stored(engine, conversation_id)

        def refuse(_: Conversation) -> Conversation:
            raise InvalidParams("no")

        changes = engine.services.runner.changes
        with pytest.raises(InvalidParams):
            await changes.change(conversation_id, refuse)
        with pytest.raises(NotFound):
            await changes.change("nobody", refuse)
        waiting = asyncio.create_task(changes.change(conversation_id, refuse))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert (
            await changes.change(conversation_id, lambda conversation: conversation)
            == before
            == await stored(engine, conversation_id)
        )
