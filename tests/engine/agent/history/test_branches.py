"""Branches through the runner: edited messages, retried replies, moved heads."""

from pathlib import Path

import msgspec
import pytest

from errand.engine.core.errors import AgentBusy, Conflict, IllegalMove, InvalidParams, NotFound
from errand.protocol.agents import Agent, AgentSetHeadParams
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import Node
from errand.protocol.events import AgentUpdate, TaskUpdate
from errand.protocol.tasks.methods import TaskRetryParams, TaskStartParams
from errand.protocol.tasks.task import Task, replace_fields
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import ModelServer, Reply


async def say(
    engine: EngineParts, prompt: str, conversation_id: str | None = None, sibling_of: str | None = None
) -> Task:
    """Run a task to its end."""
    started = await engine.services.runner.start(
        TaskStartParams(
            prompt=prompt,
            conversation_id=conversation_id,
            sibling_of=sibling_of,
            model="openai_compatible/test-model",
            api_base=engine.model.url,
            approve="all",
        ),
    )
    return await engine.watcher.end(started.id)


async def retry(engine: EngineParts, node: Node, task_id: str | None = None) -> Task:
    started = await engine.services.runner.retry(TaskRetryParams(node_id=node.id, task_id=task_id))
    return await engine.watcher.end(started.id)


async def agent_of(engine: EngineParts, task: Task) -> Agent:
    agent = await engine.services.database.agents.get(task.agent_id)
    assert agent is not None
    return agent


async def branch(engine: EngineParts, task: Task) -> list[str]:
    """The texts of the branch at the agent's head."""
    agent = await agent_of(engine, task)
    assert agent.head_id is not None
    nodes = await engine.services.database.nodes.path(agent.head_id)
    return [block.text for node in nodes for block in node.blocks if isinstance(block, TextBlock)]


def asked(engine: EngineParts, number: int) -> list[str]:
    """The model's input without the system prompt."""
    return [
        str(message["content"]) for message in engine.model.requests[number].messages if message["role"] != "system"
    ]


async def test_edited_message_becomes_a_sibling_and_the_model_reads_only_its_branch(tmp_path: Path) -> None:
    replies = [Reply(text=text) for text in ("One.", "Two.", "Three.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        first = await say(engine, "first")
        await say(engine, "second", first.conversation_id)
        second = engine.watcher.nodes()[2]
        edited = await say(engine, "second, edited", first.conversation_id, second.id)
        message = engine.watcher.nodes()[4]
        assert (message.parent_id, message.task_id) == (second.parent_id, edited.id)
        assert asked(engine, 2) == ["first", "One.", "second, edited"]
        assert await branch(engine, edited) == ["first", "One.", "second, edited", "Three."]


async def test_first_message_can_be_edited_too(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="One."), Reply(text="Two.")])) as engine:
        first = await say(engine, "first")
        edited = await say(engine, "other", first.conversation_id, engine.watcher.nodes()[0].id)
        assert engine.watcher.nodes()[2].parent_id is None
        assert asked(engine, 1) == ["other"]
        assert await branch(engine, edited) == ["other", "Two."]


async def test_only_user_messages_of_the_conversation_can_be_edited(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="One."), Reply(text="Two.")])) as engine:
        first, other = await say(engine, "first"), await say(engine, "other")
        message, reply, foreign, _ = engine.watcher.nodes()
        with pytest.raises(InvalidParams, match="Only a message of a person"):
            await say(engine, "x", first.conversation_id, reply.id)
        for missing in (foreign.id, "none"):
            with pytest.raises(NotFound, match="in this conversation"):
                await say(engine, "x", first.conversation_id, missing)
        with pytest.raises(InvalidParams, match="siblingOf goes with"):
            await say(engine, "x", None, message.id)
        assert len(await engine.services.database.tasks.of_conversation(first.conversation_id)) == 1
        assert await branch(engine, other) == ["other", "Two."]


async def test_retried_reply_becomes_a_sibling_and_adds_no_message(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="One."), Reply(text="Two.")])) as engine:
        first = await say(engine, "first")
        message, reply = engine.watcher.nodes()
        again = await retry(engine, reply, "mine")
        (sibling,) = engine.watcher.nodes()[2:]
        assert (sibling.role, sibling.parent_id, sibling.task_id) == ("assistant", message.id, "mine")
        assert (again.request, again.budget) == (first.request, first.budget)
        assert (again.options.approve, again.options.mode) == (first.options.approve, first.options.mode)
        assert asked(engine, 1) == ["first"]
        assert await branch(engine, again) == ["first", "Two."]
        assert await engine.services.runner.retry(TaskRetryParams(node_id=reply.id, task_id="mine")) == again


async def test_reply_in_the_middle_of_a_task_can_be_retried(tmp_path: Path) -> None:
    replies = [shell("echo hello"), Reply(text="It said hello."), Reply(text="Hello, it said.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        await say(engine, "greet")
        result, reply = engine.watcher.nodes()[2:]
        again = await retry(engine, reply)
        assert engine.watcher.nodes()[4].parent_id == result.id
        assert await branch(engine, again) == ["greet", "Running.", "Hello, it said."]


async def test_failed_reply_can_be_retried(tmp_path: Path) -> None:
    async with engine_parts(
        tmp_path, ModelServer(replies=[Reply(status=401, error="no"), Reply(text="Two.")])
    ) as engine:
        await say(engine, "first")
        again = await retry(engine, engine.watcher.nodes()[1])
        assert (again.activity.status, await branch(engine, again)) == ("completed", ["first", "Two."])


async def test_only_replies_can_be_retried(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="One.")])) as engine:
        await say(engine, "first")
        message, reply = engine.watcher.nodes()
        with pytest.raises(InvalidParams, match="Only an agent's reply"):
            await retry(engine, message)
        with pytest.raises(NotFound):
            await retry(engine, msgspec.structs.replace(reply, id="none"))
        with pytest.raises(InvalidParams, match="taskId"):
            await retry(engine, reply, "../up")


async def test_no_branch_starts_while_the_agent_works(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(turns=[shell("sleep 60")])) as engine:
        started = await engine.start()
        await engine.watcher.task(started.id, lambda task: task.activity.status == "tool_executing")
        message, reply = engine.watcher.nodes()[:2]
        agent = await agent_of(engine, started)
        with pytest.raises(AgentBusy):
            await say(engine, "x", started.conversation_id, message.id)
        with pytest.raises(AgentBusy):
            await retry(engine, reply)
        with pytest.raises(AgentBusy):
            await engine.services.agents.set_head(
                AgentSetHeadParams(agent_id=agent.id, node_id=message.id, version=agent.version)
            )
        await engine.services.runner.stop(started.id, "the test")
        await engine.watcher.end(started.id)


async def test_head_moves_to_a_node_or_to_the_end_of_its_newest_branch(tmp_path: Path) -> None:
    replies = [Reply(text=text) for text in ("One.", "Two.", "Three.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        first = await say(engine, "first")
        message, reply = engine.watcher.nodes()
        await say(engine, "second", first.conversation_id)
        await retry(engine, reply)
        agent = await agent_of(engine, first)
        agents = engine.services.agents
        moved = await agents.set_head(
            AgentSetHeadParams(agent_id=agent.id, node_id=reply.id, version=agent.version, to_leaf=True)
        )
        assert await branch(engine, first) == ["first", "One.", "second", "Two."]
        assert engine.watcher.events[-1] == AgentUpdate(agent=moved)
        with pytest.raises(Conflict):
            await agents.set_head(AgentSetHeadParams(agent_id=agent.id, node_id=message.id, version=agent.version))
        moved = await agents.set_head(AgentSetHeadParams(agent_id=agent.id, node_id=message.id, version=moved.version))
        assert moved.head_id == message.id
        moved = await agents.set_head(
            AgentSetHeadParams(agent_id=agent.id, node_id=message.id, version=moved.version, to_leaf=True)
        )
        assert await branch(engine, first) == ["first", "Three."]


async def test_an_interrupted_task_is_resumed_on_its_own_branch_only(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="One."), shell("sleep 60")])) as engine:
        first = await say(engine, "first")
        message = engine.watcher.nodes()[0]
        started = await engine.start("second", conversation_id=first.conversation_id)
        await engine.watcher.task(started.id, lambda task: task.activity.status == "tool_executing")
    async with engine_parts(tmp_path, ModelServer(turns=[DONE, DONE, DONE])) as engine:
        stored = await engine.services.database.tasks.get(started.id)
        assert stored is not None
        engine.services.keys.allow_address("openai_compatible", engine.model.url)
        engine.services.log.publish(TaskUpdate(task=replace_fields(stored, api_base=engine.model.url)))
        agent = await agent_of(engine, started)
        agents, runner = engine.services.agents, engine.services.runner
        left = await agents.set_head(AgentSetHeadParams(agent_id=agent.id, node_id=message.id, version=agent.version))
        with pytest.raises(IllegalMove, match="another branch"):
            await runner.resume(started.id)
        assert agent.head_id is not None
        await agents.set_head(AgentSetHeadParams(agent_id=agent.id, node_id=agent.head_id, version=left.version))
        await runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).outcome.summary == "all done"
