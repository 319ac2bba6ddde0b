"""Agents of a conversation: created, moved, chatted with, deleted; no reply is lost in a race."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.errors import AgentBusy, Conflict, IllegalMove, InvalidParams, NotFound
from errand.protocol.agents import Agent, AgentCreateParams, AgentSetHeadParams, first_agent
from errand.protocol.asks import AskAnswerParams
from errand.protocol.blocks import NoticeBlock, TextBlock
from errand.protocol.conversations import AgentChatParams, AgentChatResult, FormerAgent, Node
from errand.protocol.events import AgentDeleted, AgentUpdate, ConversationUpdate
from errand.protocol.tasks.methods import TaskRetryParams
from errand.text.notice_text import notice_text
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import ModelServer, Reply
from tests.support.records import NOW, conversation


def talking() -> ModelServer:
    """Answers each message with its own text."""
    return ModelServer(answer=lambda request: Reply(text=f"re: {request.last_said}"))


async def chat(engine: EngineParts, agent: Agent, prompt: str, **seen: int | str | None) -> AgentChatResult:
    params = AgentChatParams(
        agent_id=agent.id, prompt=prompt, model="openai_compatible/test-model", api_base=engine.model.url
    )
    return await engine.services.chats.chat(msgspec.structs.replace(params, **seen))


async def path(engine: EngineParts, node_id: str | None) -> list[str]:
    nodes: tuple[Node, ...] = await engine.services.database.nodes.path(node_id) if node_id else ()
    return [block.text for node in nodes for block in node.blocks if isinstance(block, TextBlock)]


async def agents(engine: EngineParts, conversation_id: str) -> tuple[Agent, ...]:
    return await engine.services.database.agents.list(conversation_id)


async def test_creating_an_agent_opens_a_conversation_for_chats(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, talking()) as engine:
        agent = await engine.services.agents.create(AgentCreateParams(agent_id="mine", personality_id="coder"))
        assert (agent.id, agent.name, agent.head_id, agent.version) == ("mine", "Coder", None, 1)
        assert await engine.services.agents.create(AgentCreateParams(agent_id="mine")) == agent
        chat_result = await chat(engine, agent, "hello there", version=1)
        assert (chat_result.branched, chat_result.task.options.mode, chat_result.agent.id) == (False, "chat", "mine")
        await engine.watcher.end(chat_result.task.id)
        message, reply = engine.watcher.nodes()
        assert (chat_result.position.conversation_id, chat_result.position.node_id) == (
            agent.conversation_id,
            message.id,
        )
        assert (await engine.services.agents.get("mine")).head_id == reply.id
        conversation = await engine.services.database.conversations.get(agent.conversation_id)
        assert conversation is not None and conversation.title == "hello there"


async def test_second_agent_starts_at_the_head_of_the_first_under_another_name(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, talking()) as engine:
        task = await engine.watcher.end((await engine.start("hi")).id)
        where = AgentCreateParams(conversation_id=task.conversation_id, personality_id="coder")
        (first,) = await agents(engine, task.conversation_id)
        coder = await engine.services.agents.create(where)
        second, third = await asyncio.gather(engine.services.agents.create(where), engine.services.agents.create(where))
        assert {coder.name, second.name, third.name} == {"Coder", "Coder 2", "Coder 3"}
        assert coder.head_id == first.head_id
        message = engine.watcher.nodes()[0]
        other = msgspec.structs.replace(where, node_id=message.id, name=" My  own ", model="scripted/x", color="red")
        created = await engine.services.agents.create(other)
        assert (created.name, created.head_id, created.model, created.color) == (
            "My own",
            message.id,
            "scripted/x",
            "red",
        )
        for wrong in ("", "a@b", "x" * 61, "a\x00b"):
            with pytest.raises(InvalidParams, match="name"):
                await engine.services.agents.create(msgspec.structs.replace(where, name=wrong))
        for missing in ({"node_id": "none"}, {"conversation_id": "none"}, {"personality_id": "none"}):
            with pytest.raises(NotFound):
                await engine.services.agents.create(msgspec.structs.replace(where, **missing))
        with pytest.raises(InvalidParams, match="agentId"):
            await engine.services.agents.create(AgentCreateParams(agent_id="../up"))
        with pytest.raises(Conflict, match="another conversation"):
            other_place = await engine.start("elsewhere")
            await engine.services.agents.create(
                AgentCreateParams(agent_id=coder.id, conversation_id=other_place.conversation_id)
            )
        assert first_agent(await agents(engine, task.conversation_id)) == first


async def test_two_simultaneous_chats_keep_both_replies_one_on_its_own_branch(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, talking()) as engine:
        task = await engine.watcher.end((await engine.start("hi")).id)
        (agent,) = await agents(engine, task.conversation_id)
        seen = {"version": agent.version, "node_id": agent.head_id}
        results = await asyncio.gather(chat(engine, agent, "one", **seen), chat(engine, agent, "two", **seen))
        for result in results:
            await engine.watcher.end(result.task.id)
        main_chat, side_chat = sorted(results, key=lambda result: result.branched)
        assert (main_chat.branched, side_chat.branched) == (False, True)
        assert (side_chat.agent.name, side_chat.agent.beside) == ("Assistant 2", agent.id)
        for result in results:
            head = (await engine.services.agents.get(result.agent.id)).head_id
            assert await path(engine, head) == [
                "hi",
                "re: hi",
                result.task.request.prompt,
                f"re: {result.task.request.prompt}",
            ]
            message = await engine.services.database.nodes.get(result.position.node_id or "")
            assert message is not None and message.parent_id == agent.head_id
        updated_agents = [event.agent for event in engine.watcher.events if isinstance(event, AgentUpdate)]
        assert any(participant.beside == agent.id for participant in updated_agents)
        (notice,) = [b for n in engine.watcher.nodes() for b in n.blocks if isinstance(b, NoticeBlock)]
        assert "Assistant 2 answers here" in notice_text(notice)
        (default,) = [
            participant for participant in await agents(engine, agent.conversation_id) if participant.beside is None
        ]
        assert default.id == agent.id


async def test_chat_from_an_older_head_is_answered_there(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, talking()) as engine:
        task = await engine.watcher.end((await engine.start("hi")).id)
        (agent,) = await agents(engine, task.conversation_id)
        await engine.watcher.end((await chat(engine, agent, "first")).task.id)
        late = await chat(engine, agent, "late", version=agent.version, node_id=agent.head_id, task_id="late")
        await engine.watcher.end("late")
        head = (await engine.services.agents.get(late.agent.id)).head_id
        assert await path(engine, head) == ["hi", "re: hi", "late", "re: late"]
        unplaced = await chat(engine, agent, "unplaced", version=agent.version)
        await engine.watcher.end(unplaced.task.id)
        head = (await engine.services.agents.get(unplaced.agent.id)).head_id
        assert await path(engine, head) == ["hi", "re: hi", "unplaced", "re: unplaced"]
        again = await chat(engine, agent, "late", version=agent.version, node_id=agent.head_id, task_id="late")
        assert (again.agent.id, again.position, again.branched) == (late.agent.id, late.position, True)
        assert len(await agents(engine, agent.conversation_id)) == 3
        with pytest.raises(NotFound, match="no node"):
            await chat(engine, agent, "x", version=1, node_id="none")
        with pytest.raises(InvalidParams, match="empty"):
            await chat(engine, agent, " ", version=1)
        assert len(await agents(engine, agent.conversation_id)) == 3


async def test_ten_chats_at_once_are_ten_branches(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, talking()) as engine:
        agent = await engine.services.agents.create(AgentCreateParams())
        results = await asyncio.gather(*(chat(engine, agent, f"word {number}") for number in range(10)))
        for result in results:
            assert (await engine.watcher.end(result.task.id)).outcome.summary == f"re: {result.task.request.prompt}"
        every = await agents(engine, agent.conversation_id)
        assert len({participant.name for participant in every}) == len(every) == 10
        assert sum(result.branched for result in results) == 9


async def test_a_deleted_agent_leaves_its_tree_and_its_name(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, talking()) as engine:
        task = await engine.watcher.end((await engine.start("hi")).id)
        (agent,) = await agents(engine, task.conversation_id)
        reply = engine.watcher.nodes()[1]
        await engine.services.agents.delete(agent.id)
        assert engine.watcher.events[-1] == AgentDeleted(agent_id=agent.id, conversation_id=task.conversation_id)
        assert await path(engine, reply.id) == ["hi", "re: hi"]
        conversation = await engine.services.database.conversations.get(task.conversation_id)
        assert conversation is not None
        assert conversation.former == (FormerAgent(id=agent.id, name="Assistant", color=agent.color),)
        with pytest.raises(NotFound):
            await engine.services.agents.delete(agent.id)
        with pytest.raises(NotFound):
            await chat(engine, agent, "still there?")
        goes_on = await engine.watcher.end((await engine.start("and now?", conversation_id=task.conversation_id)).id)
        (heir,) = await agents(engine, task.conversation_id)
        assert (goes_on.agent_id, heir.id == agent.id) == (heir.id, False)
        assert await path(engine, heir.head_id) == ["hi", "re: hi", "and now?", "re: and now?"]
        assert "[Assistant]: re: hi" in str(engine.model.requests[-1].messages)
        again = await engine.services.runner.retry(TaskRetryParams(node_id=reply.id))
        assert again.agent_id == heir.id
        await engine.watcher.end(again.id)


async def test_working_agent_cannot_be_deleted_and_its_interrupted_task_can_only_be_stopped(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[shell("sleep 60")])) as engine:
        started = await engine.start()
        await engine.watcher.task(started.id, lambda task: task.activity.status == "tool_executing")
        with pytest.raises(AgentBusy):
            await engine.services.agents.delete(started.agent_id)
    async with engine_parts(tmp_path, talking()) as engine:
        await engine.services.agents.delete(started.agent_id)
        with pytest.raises(NotFound, match="was deleted, so it cannot be resumed"):
            await engine.services.runner.resume(started.id)
        ended = await engine.services.runner.stop(started.id, "the test")
        assert ended.activity.status == "cancelled"
        with pytest.raises(IllegalMove):
            await engine.services.runner.stop(started.id, "the test")


async def test_no_agent_can_be_added_to_a_conversation_being_deleted(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, talking()) as engine:
        task = await engine.watcher.end((await engine.start("hi")).id)
        (agent,) = await agents(engine, task.conversation_id)
        async with engine.services.locks.lock_conversation(task.conversation_id):
            with pytest.raises(AgentBusy):
                await engine.services.agents.create(AgentCreateParams(conversation_id=task.conversation_id))
            with pytest.raises(AgentBusy):
                await chat(engine, agent, "now?")
        assert await agents(engine, task.conversation_id) == (agent,)


async def test_chosen_agent_name_stays_and_a_new_personality_brings_its_own(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, talking()) as engine:
        agent = await engine.services.agents.create(AgentCreateParams(name="Bob", personality_id="coder"))
        await engine.watcher.end((await chat(engine, agent, "hi")).task.id)
        assert (await engine.services.agents.get(agent.id)).name == "Bob"
        other = await engine.services.agents.create(
            AgentCreateParams(conversation_id=agent.conversation_id, personality_id="writer")
        )
        started = await engine.start("@Bob hi", conversation_id=agent.conversation_id, personality_id="writer")
        await engine.watcher.end(started.id)
        assert started.agent_id == agent.id
        assert (await engine.services.agents.get(agent.id)).name == "Writer 2"
        moved = await engine.services.agents.get(other.id)
        with pytest.raises(Conflict):
            await engine.services.agents.set_head(
                AgentSetHeadParams(agent_id=other.id, node_id=moved.head_id or "", version=moved.version - 1)
            )


async def test_tasks_agents_asks_and_grants_have_the_owner_of_their_conversation(tmp_path: Path) -> None:
    turns = [shell("touch made.txt"), DONE]
    async with engine_parts(tmp_path, ModelServer(turns=turns)) as engine:
        theirs = msgspec.structs.replace(
            conversation("conv_team", at=NOW), owner="team", workspace=str(engine.workspace)
        )
        engine.services.log.publish(ConversationUpdate(conversation=theirs))
        await engine.services.log.flush()
        task = await engine.start(approve="ask", conversation_id="conv_team")
        ask = await engine.watcher.ask(task.id)
        answer = AskAnswerParams(ask_id=ask.id, allow=True, remember="conversation")
        await engine.services.asks.answer(answer, "me")
        await engine.watcher.end(task.id)
        (grant,) = await engine.services.database.grants.valid()
        (agent,) = await engine.services.database.agents.list("conv_team")
        assert {task.owner, ask.owner, grant.owner, agent.owner} == {"team"}


async def test_task_without_a_conversation_belongs_to_the_local_owner(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda _: Reply(text="Done."))) as engine:
        task = await engine.start()
        assert (await engine.watcher.end(task.id)).owner == "local"
