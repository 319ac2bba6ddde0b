"""The engine's events translated into two other interfaces, from the records and deltas of a real engine."""

from pathlib import Path

import msgspec
import pytest

from errand.client import agent_events, thought_events
from errand.client.agent_events import (
    AgentEvent,
    AgentView,
    ChatComplete,
    ChatContent,
    ChatStart,
    ChatUsage,
    HeadUpdated,
    Position,
)
from errand.client.thought_events import FinalResponse, Thought, ThoughtView, ToolCall, ToolOutput
from errand.engine.tools.call_display import event_with_displays
from errand.protocol.agents import AgentCreateParams, AgentSetHeadParams
from errand.protocol.conversations import AgentChatParams
from errand.protocol.events import TaskMessage, TaskUpdate, TextDelta
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import Call, ModelServer, Reply


async def chat(engine: EngineParts, agent_id: str, prompt: str, version: int | None = None) -> None:
    params = AgentChatParams(
        agent_id=agent_id,
        prompt=prompt,
        version=version,
        model="openai_compatible/test-model",
        api_base=engine.model.url,
        approve="all",
    )
    await engine.watcher.end((await engine.services.chats.chat(params)).task.id)


async def test_agents_heads_and_chats_as_they_come(tmp_path: Path) -> None:
    replies = [Reply(text="Hello, person."), Reply(status=401, error="no key")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        agent = await engine.services.agents.create(AgentCreateParams())
        await chat(engine, agent.id, "hi")
        spoken = await engine.services.agents.get(agent.id)
        message, reply = engine.watcher.nodes()
        await engine.services.agents.set_head(
            AgentSetHeadParams(agent_id=agent.id, node_id=message.id, version=spoken.version)
        )
        await chat(engine, agent.id, "again")
        await engine.services.agents.delete(agent.id)
        view = AgentView()
        seen = [event for published in engine.watcher.events for event in view.record(published)]

        def at(node_id: str | None) -> Position:
            return Position(tree_id=agent.conversation_id, node_id=node_id)

        usage = ChatUsage(100, 20, None)
        assert seen[:4] == [
            agent_events.AgentCreated(agent_id=agent.id, head=at(None)),
            ChatStart(agent_id=agent.id, user_position=at(message.id)),
            HeadUpdated(agent_id=agent.id, old_head=at(None), new_head=at(message.id)),
            ChatContent(agent_id=agent.id, content="Hello, person."),
        ]
        assert ChatComplete(agent_id=agent.id, new_head=at(reply.id), usage=usage) in seen
        assert HeadUpdated(agent_id=agent.id, old_head=at(reply.id), new_head=at(message.id)) in seen
        errors = [event.message for event in seen if isinstance(event, agent_events.Error)]
        assert len(errors) == 1 and "refused the key" in errors[0]
        assert seen[-1] == agent_events.AgentDeleted(agent_id=agent.id)


async def test_text_deltas_are_reported_once_and_missed_text_comes_with_the_reply(tmp_path: Path) -> None:
    text = "A longer reply that comes in pieces. " * 20
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text=text, piece_delay_s=0.004)])) as engine:
        agent = await engine.services.agents.create(AgentCreateParams())
        await chat(engine, agent.id, "hi")
        deltas = [delta for delta in engine.watcher.deltas if isinstance(delta, TextDelta)]
        assert len(deltas) > 2
        for seen in (deltas, deltas[:1] + deltas[2:], deltas[1:], []):
            view = AgentView()
            view.record(next(published for published in engine.watcher.events if isinstance(published, TaskUpdate)))
            every: list[AgentEvent] = [event for delta in seen for event in view.delta(delta)]
            every += [event for published in engine.watcher.events for event in view.record(published)]
            assert "".join(event.content for event in every if isinstance(event, ChatContent)) == text
            late = [event for delta in deltas for event in view.delta(delta)]
            assert late == []


async def test_restarted_reply_is_reported(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Whole.")])) as engine:
        task = await engine.watcher.end((await engine.start(mode="chat")).id)
        view = AgentView()
        view.record(TaskUpdate(task=engine.watcher.tasks(task.id)[0]))
        reply = engine.watcher.nodes()[1]
        half = TextDelta(
            conversation_id=task.conversation_id,
            task_id=task.id,
            node_id=reply.id,
            block=0,
            kind="text",
            offset=0,
            text="Half",
        )
        assert view.delta(half) == (ChatContent(agent_id=task.agent_id, content="Half"),)
        again, _ = view.delta(msgspec.structs.replace(half, text="Wh"))
        assert again == agent_events.Error(message="The reply begins again.")
        assert view.record(TaskMessage(node=reply)) == (ChatContent(agent_id=task.agent_id, content="ole."),)
        listed = view.listed(await engine.services.database.agents.list(task.conversation_id))
        assert [agent.id for agent in listed.agents] == [task.agent_id]


async def test_task_is_reported_as_thoughts_calls_and_response(tmp_path: Path) -> None:
    broken = Reply(calls=(Call("shell", "{not json"),))
    replies = [Reply(text="Let me see.", thinking="hm", calls=shell("echo hi").calls), broken, DONE]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        view = ThoughtView(task.id)
        seen = [
            event for published in map(event_with_displays, engine.watcher.events) for event in view.record(published)
        ]
        assert seen[:3] == [
            Thought(text="hm"),
            Thought(text="Let me see."),
            ToolCall(name="shell", args='{"command":"echo hi"}'),
        ]
        output, call, refused = seen[3:6]
        assert isinstance(output, ToolOutput) and "hi" in output.text
        assert call == ToolCall(name="shell", args="{not json")
        assert isinstance(refused, ToolOutput)
        assert seen[6:] == [FinalResponse(text="all done")]
        other = ThoughtView("another")
        assert [event for published in engine.watcher.events for event in other.record(published)] == []


@pytest.mark.parametrize(
    ("replies", "turns", "last"),
    [
        ([Reply(status=401, error="no key")], None, "Error"),
        ([Reply(text="It is four.")], None, "FinalResponse"),
    ],
)
async def test_how_a_task_ends(tmp_path: Path, replies: list[Reply], turns: int | None, last: str) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        task = await engine.watcher.end((await engine.start(mode="chat", max_turns=turns)).id)
        view = ThoughtView(task.id)
        seen = [event for published in engine.watcher.events for event in view.record(published)]
        assert type(seen[-1]).__name__ == last
        assert seen.count(seen[-1]) == 1, "nothing is said twice"
        assert isinstance(seen[-1], thought_events.Error | FinalResponse) and seen[-1].text
