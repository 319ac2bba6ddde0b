"""Rounds of several agents on a real engine: who replies, who follows, and what ends a round."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from errand.engine.agent.tasks.rounds import Rounds, next_reply
from errand.protocol.agents import Agent, AgentCreateParams, AgentSetHeadParams
from errand.protocol.blocks import NoticeBlock
from errand.protocol.conversations import Conversation, TurnTaking
from errand.protocol.events import ConversationUpdate
from errand.protocol.tasks.groups import Allowance
from errand.protocol.tasks.task import replace_fields
from errand.protocol.usage import Usage
from errand.text.notice_text import notice_text
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.stored_records import on_both

Speech = Callable[[str, ReceivedRequest], Reply]


def speaking(speech: Speech, port: int = 0) -> ModelServer:
    """The system prompt tells which agent is asked."""
    return ModelServer(answer=lambda request: speech(_name(request), request), port=port)


def _name(request: ReceivedRequest) -> str:
    introduction = str(request.messages[0]["content"]).partition("## Who else is here")[2]
    return introduction.partition("You are ")[2].partition(".")[0]


async def company(engine: EngineParts, rule: TurnTaking) -> tuple[Agent, Agent, Agent]:
    """Anna, Coder and Writer, at the same node of a new conversation."""
    roster = engine.services.agents
    anna = await roster.create(AgentCreateParams(name="Anna"))
    create_params = AgentCreateParams(conversation_id=anna.conversation_id)
    coder = await roster.create(msgspec.structs.replace(create_params, personality_id="coder"))
    writer = await roster.create(msgspec.structs.replace(create_params, personality_id="writer"))
    conversation = await engine.services.database.conversations.get(anna.conversation_id)
    assert isinstance(conversation, Conversation)
    moderator = {"Anna": anna.id, "Coder": coder.id}.get(rule.moderator_id or "")
    rule = msgspec.structs.replace(rule, moderator_id=moderator)
    engine.services.log.publish(
        ConversationUpdate(conversation=msgspec.structs.replace(conversation, turn_taking=rule))
    )
    await engine.services.log.flush()
    return anna, coder, writer


async def spoken(engine: EngineParts, prompt: str, conversation_id: str) -> list[str]:
    """The agents that replied to a message, in order, once the round has ended."""
    before = len(engine.watcher.events)
    started = await engine.start(prompt, conversation_id=conversation_id, mode="chat")
    await engine.watcher.end(started.id)
    await quiet(engine)
    names = {agent.id: agent.name for agent in await engine.services.database.agents.list(conversation_id)}
    assert len(engine.watcher.events) > before
    tasks = await engine.services.database.tasks.of_conversation(conversation_id)
    return [names[task.agent_id] for task in reversed(tasks) if task.started_at >= started.started_at]


async def quiet(engine: EngineParts) -> None:
    """Wait until no task runs and none is about to start."""
    while at_work := [task for task in asyncio.all_tasks() if task.get_name().startswith("task task_")]:
        await asyncio.wait(at_work)
    assert engine.services.runner.running.shown() == ()


def notices(engine: EngineParts) -> list[str]:
    return [notice_text(b) for node in engine.watcher.nodes() for b in node.blocks if isinstance(b, NoticeBlock)]


def said(request: ReceivedRequest) -> list[tuple[str, str]]:
    return [
        (str(message["role"]), str(message["content"])) for message in request.messages if message["role"] != "system"
    ]


async def test_message_goes_to_the_agent_it_names_and_agents_at_the_same_head_follow(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, speaking(lambda name, request: Reply(text=f"{name} here"))) as engine:
        anna, coder, writer = await company(engine, TurnTaking())
        conversation_id = anna.conversation_id
        assert await spoken(engine, "hello", conversation_id) == ["Anna"]
        assert await spoken(engine, "@Coder and you?", conversation_id) == ["Coder"]
        assert await spoken(engine, "still there?", conversation_id) == ["Coder"]
        heads = {agent.head_id for agent in await engine.services.database.agents.list(conversation_id)}
        assert heads == {engine.watcher.nodes()[-1].id}
        assert said(engine.model.requests[-1]) == [
            ("user", "hello\n\n[Anna]: Anna here\n\n@Coder and you?"),
            ("assistant", "Coder here"),
            ("user", "still there?"),
        ]
        assert {coder.head_id, writer.head_id} == {None}


async def test_agents_that_name_each_other_take_turns_until_the_limit(tmp_path: Path) -> None:
    def speech(name: str, request: ReceivedRequest) -> Reply:
        return Reply(text="@Coder, your turn" if name == "Anna" else "back to @Anna")

    async with engine_parts(tmp_path, speaking(speech)) as engine:
        anna, *_ = await company(engine, TurnTaking(limit=3))
        assert await spoken(engine, "talk", anna.conversation_id) == ["Anna", "Coder", "Anna"]
        (limit,) = notices(engine)
        assert limit.startswith("The limit of 3 replies in a row is reached.")
        heads = {agent.head_id for agent in await engine.services.database.agents.list(anna.conversation_id)}
        assert heads == {engine.watcher.nodes()[-1].id}
        assert await spoken(engine, "@Writer you", anna.conversation_id) == ["Writer", "Anna", "Coder"]


async def test_in_round_robin_each_agent_speaks_once(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, speaking(lambda name, request: Reply(text=name.upper()))) as engine:
        anna, *_ = await company(engine, TurnTaking(rule="round_robin"))
        assert await spoken(engine, "what do you think?", anna.conversation_id) == ["Anna", "Coder", "Writer"]
        expected_text = "what do you think?\n\n[Anna]: ANNA\n\n[Coder]: CODER"
        assert said(engine.model.requests[-1]) == [("user", expected_text)]
        assert await spoken(engine, "@Writer, @Anna?", anna.conversation_id) == ["Writer", "Anna"]
        assert notices(engine) == []


async def test_a_moderator_speaks_between_the_others(tmp_path: Path) -> None:
    def speech(name: str, request: ReceivedRequest) -> Reply:
        if name != "Coder":
            return Reply(text=f"{name} says so")
        heard = str(said(request))
        return Reply(
            text="@Anna?" if "Anna says" not in heard else "@Writer?" if "Writer says" not in heard else "End."
        )

    async with engine_parts(tmp_path, speaking(speech)) as engine:
        anna, *_ = await company(engine, TurnTaking(rule="moderator", moderator_id="Coder"))
        expected = ["Coder", "Anna", "Coder", "Writer", "Coder"]
        assert await spoken(engine, "discuss", anna.conversation_id) == expected


async def test_a_stop_and_a_failure_end_a_round(tmp_path: Path) -> None:
    gate = asyncio.Event()

    def speech(name: str, request: ReceivedRequest) -> Reply:
        if "fail" in str(said(request)[-1]):
            return Reply(status=401, error="no")
        return Reply(text="slow", gate=gate)

    async with engine_parts(tmp_path, speaking(speech)) as engine:
        anna, *_ = await company(engine, TurnTaking(rule="round_robin"))
        started = await engine.start("go", conversation_id=anna.conversation_id, mode="chat")
        await engine.model.request(0)
        await engine.services.runner.stop(started.id, "the test")
        assert (await engine.watcher.end(started.id)).activity.status == "cancelled"
        await quiet(engine)
        assert len(await engine.services.database.tasks.of_conversation(anna.conversation_id)) == 1
        assert await spoken(engine, "fail", anna.conversation_id) == ["Anna"]
        assert notices(engine)[-1].startswith("The round ended: Anna failed before it was Coder's turn.")


async def test_agent_moved_to_another_branch_takes_no_turn(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, speaking(lambda name, request: Reply(text=name))) as engine:
        anna, coder, _ = await company(engine, TurnTaking(rule="round_robin"))
        assert await spoken(engine, "one", anna.conversation_id) == ["Anna", "Coder", "Writer"]
        now, message = await engine.services.agents.get(coder.id), engine.watcher.nodes()[0]
        moved = await engine.services.agents.set_head(
            AgentSetHeadParams(agent_id=coder.id, node_id=message.id, version=now.version)
        )
        assert await spoken(engine, "two", anna.conversation_id) == ["Anna", "Writer"]
        assert await engine.services.agents.get(coder.id) == moved


async def test_message_to_another_agent_ends_the_round(tmp_path: Path) -> None:
    gate = asyncio.Event()

    def speech(name: str, request: ReceivedRequest) -> Reply:
        return Reply(text=name, gate=gate if name == "Anna" else None)

    async with engine_parts(tmp_path, speaking(speech)) as engine:
        anna, *_ = await company(engine, TurnTaking())
        first = await engine.start("@Anna @Coder go", conversation_id=anna.conversation_id, mode="chat")
        await engine.model.request(0)
        second = await engine.start("@Writer quick", conversation_id=anna.conversation_id, mode="chat")
        assert (await engine.watcher.end(second.id)).activity.status == "completed"
        gate.set()
        await engine.watcher.end(first.id)
        await quiet(engine)
        tasks = await engine.services.database.tasks.of_conversation(anna.conversation_id)
        assert {task.id for task in tasks} == {first.id, second.id}
        heads = {
            agent.name: agent.head_id for agent in await engine.services.database.agents.list(anna.conversation_id)
        }
        assert heads["Anna"] != heads["Writer"]


async def test_engine_in_shutdown_does_not_start_the_next_speaker(tmp_path: Path) -> None:
    gate = asyncio.Event()
    conversation_id = ""

    def speech(name: str, request: ReceivedRequest) -> Reply:
        return Reply(text=name, gate=gate)

    async with engine_parts(tmp_path, speaking(speech)) as engine:
        anna, *_ = await company(engine, TurnTaking(rule="round_robin"))
        conversation_id = anna.conversation_id
        await engine.start("go", conversation_id=conversation_id, mode="chat")
        await engine.model.request(0)
        engine.services.locks.close()
        gate.set()
        await quiet(engine)
    async with engine_parts(tmp_path, speaking(speech)) as engine:
        (task,) = await engine.services.database.tasks.of_conversation(conversation_id)
        assert task.activity.status == "completed"
        (agent,) = [
            candidate
            for candidate in await engine.services.database.agents.list(conversation_id)
            if candidate.id == task.agent_id
        ]
        nodes = await engine.services.database.nodes.path(agent.head_id or "")
        (notice,) = nodes[-1].blocks
        assert isinstance(notice, NoticeBlock)
        assert notice_text(notice).startswith("The round ended: Coder could not start. The engine is ending.")


@on_both
async def test_round_of_a_killed_engine_continues_with_the_resumed_task(tmp_path: Path) -> None:
    gate, after = asyncio.Event(), tmp_path / "after"

    def speech(name: str, request: ReceivedRequest) -> Reply:
        return Reply(text=name, gate=None if name == "Anna" else gate)

    async with engine_parts(tmp_path, speaking(speech)) as engine:
        anna, *_ = await company(engine, TurnTaking(rule="round_robin"))
        await engine.start("go", conversation_id=anna.conversation_id, mode="chat")
        await engine.model.request(1)
        port = crash(engine, after)
        gate.set()
        await quiet(engine)
    async with engine_parts(after, speaking(speech, port)) as engine:
        (cut,) = await engine.services.database.tasks.active()
        await engine.services.runner.resume(cut.id)
        await engine.watcher.end(cut.id)
        await quiet(engine)
        agents = await engine.services.database.agents.list(anna.conversation_id)
        (head,) = {agent.head_id for agent in agents}
        path = await engine.services.database.nodes.path(head or "")
        names = {agent.id: agent.name for agent in agents}
        assert [names[node.author] for node in path if node.role == "assistant"] == ["Anna", "Coder", "Writer"]
        assert [_name(request) for request in engine.model.requests] == ["Coder", "Writer"]


async def test_engine_messages_within_a_task_start_no_new_round(tmp_path: Path) -> None:
    """A task in `task` mode gets a message of the engine after each reply that does not complete it."""
    done = Reply(calls=(Call("task_complete", {"summary": "done"}),))

    def speech(name: str, request: ReceivedRequest) -> Reply:
        return done if "task_complete" in request.last_said else Reply(text=f"{name} thinks.")

    async with engine_parts(tmp_path, speaking(speech)) as engine:
        anna, *_ = await company(engine, TurnTaking(rule="round_robin"))
        started = await engine.start("go", conversation_id=anna.conversation_id, mode="task")
        await engine.watcher.end(started.id)
        await quiet(engine)
        tasks = await engine.services.database.tasks.of_conversation(anna.conversation_id)
        assert [task.activity.status for task in tasks] == ["completed"] * 3
        assert len([node for node in engine.watcher.nodes() if node.role == "user"]) == 4


async def test_agents_follow_a_long_task_to_its_end(tmp_path: Path) -> None:
    def speech(name: str, request: ReceivedRequest) -> Reply:
        calls = (Call("send_update", {"message": f"{request.turn}"}),)
        return Reply(text=f"{name} at last.") if request.turn >= 120 or name != "Anna" else Reply(calls=calls)

    async with engine_parts(tmp_path, speaking(speech)) as engine:
        anna, *_ = await company(engine, TurnTaking())
        await engine.services.agents.delete(anna.id)
        bert = await engine.services.agents.create(AgentCreateParams(conversation_id=anna.conversation_id, name="Anna"))
        started = await engine.start("@Anna, then @Coder", conversation_id=anna.conversation_id, max_turns=200)
        assert started.agent_id == bert.id
        await engine.watcher.end(started.id)
        await quiet(engine)
        tasks = await engine.services.database.tasks.of_conversation(anna.conversation_id)
        names = {agent.id: agent.name for agent in await engine.services.database.agents.list(anna.conversation_id)}
        assert [names[task.agent_id] for task in reversed(tasks)] == ["Anna", "Coder"]
        heads = {agent.head_id for agent in await engine.services.database.agents.list(anna.conversation_id)}
        assert heads == {engine.watcher.nodes()[-1].id}


async def test_round_ended_by_the_limit_continues_after_the_last_speaker(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, speaking(lambda name, request: Reply(text=name))) as engine:
        anna, *_ = await company(engine, TurnTaking(rule="round_robin", limit=2))
        assert await spoken(engine, "all of you", anna.conversation_id) == ["Anna", "Coder"]
        assert await spoken(engine, "go on", anna.conversation_id) == ["Writer", "Anna"]


async def test_budget_applies_to_the_whole_round(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, speaking(lambda name, request: Reply(text=name))) as engine:
        anna, coder, _ = await company(engine, TurnTaking(rule="round_robin", limit=1))
        services = engine.services
        ended = await engine.watcher.end((await engine.start("go", conversation_id=anna.conversation_id)).id)
        await quiet(engine)
        spent = replace_fields(ended, budget_usd=0.5, usage=Usage(cost_usd=0.2))
        _, params = await next_reply(spent, coder, services.database)
        assert params.budget_usd == pytest.approx(0.3)
        raised = replace_fields(spent, allowance=Allowance(turns=50, budget_usd=0.7))
        _, params = await next_reply(raised, coder, services.database)
        assert params.budget_usd == pytest.approx(0.5)
        everything = replace_fields(spent, usage=Usage(cost_usd=0.6))
        assert await Rounds(services.log, services.database, services.locks).on_task_ended(everything) is None
        assert notices(engine)[-1].startswith("The round ended: its budget was used up before it was Coder's turn.")


async def test_removed_agents_are_skipped_and_a_round_without_its_moderator_follows_addressing(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()

    def speech(name: str, request: ReceivedRequest) -> Reply:
        return Reply(text="@Anna?" if name == "Coder" else name, gate=gate if name == "Anna" else None)

    async with engine_parts(tmp_path, speaking(speech)) as engine:
        anna, coder, _ = await company(engine, TurnTaking(rule="moderator", moderator_id="Coder", limit=4))
        started = await engine.start("go", conversation_id=anna.conversation_id, mode="chat")
        await engine.model.request(1)
        await engine.services.agents.delete(coder.id)
        gate.set()
        await engine.watcher.end(started.id)
        await quiet(engine)
        conversation = await engine.services.database.conversations.get(anna.conversation_id)
        assert conversation is not None and conversation.turn_taking == TurnTaking(limit=4)
        assert [former_agent.name for former_agent in conversation.former] == ["Coder"]
        assert await spoken(engine, "@Coder? @Writer?", anna.conversation_id) == ["Writer"]
