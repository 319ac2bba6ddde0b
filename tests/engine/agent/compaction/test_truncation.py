"""Requests for a conversation that exceeds the context window and cannot be summarised."""

import asyncio
from pathlib import Path

import msgspec

from errand.engine.agent.compaction.truncation import truncate
from errand.engine.agent.history.visible_history import visible_history
from errand.engine.core.messages import AssistantMessage, ToolResultMessage, UserMessage, text_of
from errand.protocol.conversations import CONVERSATION_CHANGE, ConversationChangeParams
from tests.engine.agent.compaction.test_context_window import (
    SUMMARY,
    WINDOW,
    echo,
    is_summary,
    narrow,
    reader,
    size,
    until_done,
    warnings,
)
from tests.engine.agent.compaction.test_summaries import answering, contents, summarise, talk
from tests.engine.agent.compaction.test_summaries import said as said_in
from tests.engine.agent.compaction.test_visible_history import said, step
from tests.support.engine_parts import branch, engine_parts
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.store_engine import store_engine

PATH = (said("u1", "one"), *step(1, 100), *step(2, 100), said("u2", "two"), *step(3, 100), *step(4, 100))


def test_truncation_keeps_the_newest_turns_kept_entries_the_last_user_message_and_the_last_turn() -> None:
    history = visible_history(PATH)
    for room, kept_ids, left in (
        (0, (), ["u1", "u2", "a4", "t4"]),
        (0, ("t1",), ["u1", "a1", "t1", "u2", "a4", "t4"]),
        (233, (), ["u1", "u2", "a3", "t3", "a4", "t4"]),
        (353, (), ["u1", "a2", "t2", "u2", "a3", "t3", "a4", "t4"]),
        (10_000, (), [node.id for node in PATH]),
    ):
        truncation = truncate(history, kept_ids, room, 10_000, 1_000)
        assert [node.id for node in truncation.history.rest] == left
        assert truncation.left_out == {node.id for node in PATH} - set(left)
        assert not truncation.shortens


def test_too_long_tool_result_loses_its_middle_and_a_user_message_does_not() -> None:
    path = (said("u1", "u" * 3_000), *step(1, 9_000))
    truncation = truncate(visible_history(path), (), 0, 5_000, 1_000)
    assert (truncation.shortens, truncation.left_out) == (True, frozenset())
    asked, call, result = truncation.history.messages(tuple)
    assert (
        isinstance(asked, UserMessage) and isinstance(call, AssistantMessage) and isinstance(result, ToolResultMessage)
    )
    assert len(text_of(asked)) == 3_000
    assert len(text_of(result)) < 2_100 and "characters left out" in text_of(result)
    assert truncate(visible_history(path[:1]), (), 0, 100, 1_000).history.rest == path[:1]
    assert truncate(visible_history(()), (), 0, 100, 1_000).history.rest == ()


async def test_turn_larger_than_the_window_still_leaves_the_request_of_the_user(
    tmp_path: Path,
) -> None:
    large = Reply(calls=(Call("shell", {"command": "head -c 60000 /dev/zero | tr '\\0' x"}),))
    replies = [echo(0), large, echo(2), Reply(text="Done.")]
    async with engine_parts(tmp_path, reader(lambda turn: replies[turn], lambda _: Reply(text=SUMMARY))) as engine:
        narrow(engine)
        engine.services.settings.set("summarise_at", 0)
        ended = await engine.watcher.end((await engine.start("Look into the harbour")).id)
        assert ended.activity.status == "completed"
        assert max(map(size, engine.model.requests)) < WINDOW
        assert all("Look into the harbour" in contents(request) for request in engine.model.requests)
        after = engine.model.requests[2].messages
        assert [message["role"] for message in after] == ["system", "user", "assistant", "tool"]
        assert "characters left out" in str(after[-1]["content"])
        assert warnings(engine)[0] == (
            "The context window is full: the 2 oldest entries were left out. The newest result was shortened."
        )


async def test_kept_message_stays_when_the_oldest_are_left_out(tmp_path: Path) -> None:
    def steps(turn: int) -> Reply:
        return until_done(13)(turn) if turn else Reply(text="Noted.")

    async with store_engine(tmp_path, reader(steps, lambda _: Reply(text=SUMMARY))) as engine:
        parts = engine.parts
        narrow(parts)
        parts.services.settings.set("summarise_at", 0)
        first = await parts.start("The password of the lighthouse is Ebb.")
        await parts.watcher.end(first.id)
        kept_node = await said_in(parts, first.conversation_id, "The password of the lighthouse is Ebb.")
        keep = ConversationChangeParams(conversation_id=first.conversation_id, keep_node_id=kept_node.id)
        await engine.stores.session.call(CONVERSATION_CHANGE, keep)
        ended = await parts.watcher.end((await parts.start("Go on", conversation_id=first.conversation_id)).id)
        assert ended.activity.status == "completed" and any("left out" in text for text in warnings(parts))
        assert all(any("is Ebb." in text for text in contents(request)) for request in parts.model.requests)


async def test_entry_kept_during_a_task_is_read_from_its_next_turn_on(tmp_path: Path) -> None:
    gate = asyncio.Event()
    works = iter(range(100))

    def answer(request: ReceivedRequest) -> Reply:
        if is_summary(request) or "Work" not in contents(request):
            return answering(request)
        turn = next(works)
        return Reply(text="Done.") if turn == 2 else msgspec.structs.replace(echo(turn), gate=gate if turn else None)

    async with store_engine(tmp_path, ModelServer(answer=answer)) as engine:
        parts = engine.parts
        talked = await talk(parts, 6)
        nodes = await branch(parts, talked.conversation_id)
        kept_node = next(node for node in nodes if node.role == "assistant" and "Reply 1." in str(node.blocks))
        await parts.watcher.end((await summarise(engine, talked.conversation_id)).id)
        before = len(parts.model.requests)
        task = await parts.start("Work", conversation_id=talked.conversation_id)
        await parts.model.request(before + 1)
        keep = ConversationChangeParams(conversation_id=talked.conversation_id, keep_node_id=kept_node.id)
        await engine.stores.session.call(CONVERSATION_CHANGE, keep)
        gate.set()
        assert (await parts.watcher.end(task.id)).activity.status == "completed"
        sent = [contents(request) for request in parts.model.requests[before:]]
        assert ["Reply 1." in str(texts) for texts in sent] == [False, False, True]
        assert all(texts[1:3] == [SUMMARY, "Message 0"] for texts in sent)
