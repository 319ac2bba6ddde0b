"""Manual summaries: made, edited, used by the next task; kept messages survive them."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from errand.client.errors import CallError
from errand.engine.agent.compaction.summary import record_of
from errand.engine.core.errors import IllegalMove
from errand.protocol.blocks import SummaryBlock, TextBlock
from errand.protocol.context import (
    CONTEXT_EXPLAIN,
    CONVERSATION_EDIT_SUMMARY,
    CONVERSATION_SUMMARISE,
    ContextExplainParams,
    ConversationSummariseParams,
    SummaryEditParams,
)
from errand.protocol.conversations import CONVERSATION_CHANGE, ConversationChangeParams, Node, TurnTaking
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task
from tests.engine.agent.compaction.test_context_window import SUMMARY, is_summary, summaries
from tests.engine.agent.tasks.test_rounds import company, quiet, spoken
from tests.support.engine_parts import EngineParts, branch, crash, engine_parts
from tests.support.model_server import ModelServer, ReceivedRequest, Reply
from tests.support.records import node
from tests.support.store_engine import StoreEngine, store_engine

LONG = "The tide came in slowly. " * 50


def answering(request: ReceivedRequest) -> Reply:
    return Reply(text=SUMMARY) if is_summary(request) else Reply(text=f"{LONG}Reply {request.turn}.")


async def talk(engine: EngineParts, times: int) -> Task:
    task = await engine.start("Message 0", mode="chat")
    await engine.watcher.end(task.id)
    for number in range(1, times):
        task = await engine.start(f"Message {number}", mode="chat", conversation_id=task.conversation_id)
        await engine.watcher.end(task.id)
    return task


async def summarise(engine: StoreEngine, conversation_id: str, task_id: str | None = None) -> Task:
    params = ConversationSummariseParams(conversation_id=conversation_id, task_id=task_id)
    return (await engine.stores.session.call(CONVERSATION_SUMMARISE, params)).task


async def said(engine: EngineParts, conversation_id: str, text: str) -> Node:
    nodes = await branch(engine, conversation_id)
    return next(node for node in nodes if node.role == "user" and words(node) == text)


def words(node: Node) -> str:
    return "".join(block.text for block in node.blocks if isinstance(block, TextBlock))


def contents(request: ReceivedRequest) -> list[str]:
    """The paragraphs, since what a person said in a row is sent as one message."""
    return [part for message in request.messages[1:] for part in str(message["content"]).split("\n\n")]


async def test_manual_summary_covers_older_messages_and_keeps_a_pinned_one(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(answer=answering)) as engine:
        parts = engine.parts
        talked = await talk(parts, 6)
        kept_node = await said(parts, talked.conversation_id, "Message 1")
        keep = ConversationChangeParams(conversation_id=talked.conversation_id, keep_node_id=kept_node.id)
        changed = await engine.stores.session.call(CONVERSATION_CHANGE, keep)
        assert changed.conversation.kept == (kept_node.id,)
        task = await summarise(engine, talked.conversation_id, "by-hand")
        ended = await parts.watcher.end(task.id)
        assert (ended.activity.status, ended.progress.step_count, ended.progress.usage.input_tokens) == (
            "completed",
            0,
            100,
        )
        assert ended.outcome.summary == "What was said before is summarised for the model."
        (node,) = summaries(parts)
        assert (node.author, node.task_id) == ("engine", "by-hand")
        assert await summarise(engine, talked.conversation_id, "by-hand") == ended
        again = await parts.start("And now?", mode="chat", conversation_id=talked.conversation_id)
        await parts.watcher.end(again.id)
        read = contents(parts.model.requests[-1])
        assert [text for text in read if text == SUMMARY or text.startswith("Message")] == [
            SUMMARY,
            *(f"Message {number}" for number in range(6)),
        ]
        assert read[-1] == "And now?"
        explain = ContextExplainParams(task_id=again.id, largest=3)
        explained = await engine.stores.session.call(CONTEXT_EXPLAIN, explain)
        assert [share.part for share in explained.shares] == [
            "system",
            "tools",
            "summary",
            "kept",
            "environment",
            "history",
        ]
        assert len(explained.largest) == 3
        assert explained.largest[0].text.startswith("The tide came in slowly.")
        assert [item.tokens for item in explained.largest] == sorted(
            (item.tokens for item in explained.largest), reverse=True
        )


async def test_summary_can_be_edited_and_a_branch_from_before_it_reads_all_messages(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(answer=answering)) as engine:
        parts = engine.parts
        talked = await talk(parts, 4)
        await parts.watcher.end((await summarise(engine, talked.conversation_id)).id)
        (old,) = summaries(parts)
        edit = SummaryEditParams(node_id=old.id, text="It was about the tide.")
        new = (await engine.stores.session.call(CONVERSATION_EDIT_SUMMARY, edit)).node
        before, after = _block(old), _block(new)
        assert (new.parent_id, new.author, after.text) == (old.id, "user", "It was about the tide.")
        assert (after.until_id, after.nodes) == (before.until_id, before.nodes)
        task = await parts.start("And now?", mode="chat", conversation_id=talked.conversation_id)
        await parts.watcher.end(task.id)
        assert contents(parts.model.requests[-1])[1] == "It was about the tide."
        sibling = await said(parts, talked.conversation_id, "Message 2")
        earlier = contents(parts.model.requests[2])
        other = await parts.services.runner.start(_sibling(talked, sibling.id, parts.model.url, "Message 2, again"))
        await parts.watcher.end(other.id)
        assert contents(parts.model.requests[-1])[:-1] == earlier[:-1]


def _block(node: Node) -> SummaryBlock:
    return next(block for block in node.blocks if isinstance(block, SummaryBlock))


def _sibling(task: Task, node_id: str, url: str, prompt: str) -> TaskStartParams:
    return TaskStartParams(
        prompt=prompt,
        conversation_id=task.conversation_id,
        sibling_of=node_id,
        model=task.request.model,
        api_base=url,
        api_key="sk-test",
        mode="chat",
    )


async def test_manual_summary_is_refused_where_it_is_not_possible(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply(text="Hi."), Reply(text="Later.", gate=gate)]
    async with store_engine(tmp_path, ModelServer(replies=replies)) as engine:
        call = engine.stores.session.call
        with pytest.raises(CallError, match="no such agent"):
            await summarise(engine, "nowhere")
        with pytest.raises(CallError, match="no summary"):
            await call(CONVERSATION_EDIT_SUMMARY, SummaryEditParams(node_id="nowhere", text="x"))
        with pytest.raises(CallError, match="1 to 100,000 characters"):
            await call(CONVERSATION_EDIT_SUMMARY, SummaryEditParams(node_id="nowhere", text=" "))
        first = await talk(engine.parts, 1)
        with pytest.raises(CallError, match="nothing to summarise yet"):
            await summarise(engine, first.conversation_id)
        with pytest.raises(CallError, match="no node"):
            params = ConversationChangeParams(conversation_id=first.conversation_id, keep_node_id="nowhere")
            await call(CONVERSATION_CHANGE, params)
        busy = await engine.parts.start("go", conversation_id=first.conversation_id)
        with pytest.raises(CallError, match="works on a task"):
            await summarise(engine, first.conversation_id)
        gate.set()
        await engine.parts.watcher.end(busy.id)


async def test_message_sent_during_a_summary_is_answered_after_it(tmp_path: Path) -> None:
    gate = asyncio.Event()

    def answer(request: ReceivedRequest) -> Reply:
        return Reply(text=SUMMARY, gate=gate) if is_summary(request) else answering(request)

    async with store_engine(tmp_path, ModelServer(answer=answer)) as engine:
        talked = await talk(engine.parts, 4)
        task = await summarise(engine, talked.conversation_id)
        await engine.parts.model.request(4)
        await engine.parts.say(task.id, "And now?")
        gate.set()
        ended = await engine.parts.watcher.end(task.id)
        assert (ended.activity.status, ended.progress.step_count) == ("completed", 1)
        read = contents(engine.parts.model.requests[-1])
        assert (read[1], read[-1]) == (SUMMARY, "And now?")


async def test_failed_manual_summary_gives_the_reason_and_an_interrupted_one_is_made_again(tmp_path: Path) -> None:
    gate = asyncio.Event()
    asked = 0

    def answer(request: ReceivedRequest) -> Reply:
        nonlocal asked
        if not is_summary(request):
            return answering(request)
        asked += 1
        return Reply(status=400, error="no") if asked <= 2 else Reply(text=SUMMARY, gate=gate)

    async with store_engine(tmp_path, ModelServer(answer=answer)) as engine:
        talked = await talk(engine.parts, 4)
        failed = await engine.parts.watcher.end((await summarise(engine, talked.conversation_id)).id)
        assert failed.outcome.error is not None and failed.outcome.error.startswith("No summary was made: ")
        task = await summarise(engine, talked.conversation_id)
        await engine.parts.model.request(6)
        port = crash(engine.parts, tmp_path / "after")
        await engine.parts.services.runner.stop(task.id, "the test")
        await engine.parts.watcher.end(task.id)
    gate.set()
    async with engine_parts(tmp_path / "after", ModelServer(answer=answer, port=port)) as after:
        params = ConversationSummariseParams(conversation_id=task.conversation_id)
        with pytest.raises(IllegalMove, match="was interrupted"):
            await after.services.runner.summarise(params)
        await after.services.runner.resume(task.id)
        assert (await after.watcher.end(task.id)).activity.status == "completed"
        assert len(summaries(after)) == 1
        (agent,) = await after.services.database.agents.list(task.conversation_id)
        assert agent.head_id == summaries(after)[0].id


async def test_one_of_several_agents_summarises_and_no_agent_takes_a_turn_after_it(tmp_path: Path) -> None:
    async with store_engine(tmp_path, ModelServer(answer=answering)) as engine:
        anna, _, _ = await company(engine.parts, TurnTaking(rule="round_robin", limit=9))
        assert await spoken(engine.parts, "Message 0", anna.conversation_id) == ["Anna", "Coder", "Writer"]
        task = await engine.parts.watcher.end((await summarise(engine, anna.conversation_id)).id)
        await quiet(engine.parts)
        (node,) = summaries(engine.parts)
        agents = await engine.parts.services.database.agents.list(anna.conversation_id)
        assert (task.activity.status, {agent.head_id for agent in agents}) == ("completed", {node.id})
        assert len(await engine.parts.services.database.tasks.of_conversation(anna.conversation_id)) == 4
        record = str(
            next(request for request in engine.parts.model.requests if is_summary(request)).messages[1]["content"]
        )
        assert "Message 0" in record and "[Coder]: The tide" in record
        await spoken(engine.parts, "Message 1", anna.conversation_id)
        read = contents(engine.parts.model.requests[-1])
        assert read[1:3] == [SUMMARY, "Message 0"] and read.count("Message 0") == 1


def test_summary_input_marks_engine_messages_as_from_the_app() -> None:
    user_node = msgspec.structs.replace(node("n1", text="Mow the lawn."), role="user", author="user")
    engine_node = msgspec.structs.replace(user_node, id="n2", author="engine", blocks=(TextBlock(text="Go on."),))
    assert record_of("", (user_node, engine_node), 10_000) == "# Person\n\nMow the lawn.\n\n# App\n\nGo on."
