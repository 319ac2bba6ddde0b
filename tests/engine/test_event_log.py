"""The event log: numbers, commits, fan-out, and retention."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from app.engine.event_log import DeltaBuffer
from app.protocol.blocks import ToolResultBlock
from app.protocol.conversations import Conversation
from app.protocol.events import ConversationUpdate, TextDelta, ToolOutput
from tests.support.engine_parts import engine_parts
from tests.support.model_server import ModelServer
from tests.support.records import node


def an_event(number: int) -> ConversationUpdate:
    now = datetime.now(UTC)
    return ConversationUpdate(conversation=Conversation(id="c", title=f"{number}", created_at=now, updated_at=now))


async def test_events_reach_listeners_in_order_and_after_they_are_stored(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        log, database = engine.services.log, engine.services.database
        published = [an_event(number) for number in range(20)]
        for event in published:
            log.publish(event)
        assert engine.watcher.events == []
        await engine.watcher.until(lambda: len(engine.watcher.events) == 20)
        assert engine.watcher.events == published
        assert [record.event for record in await database.events.after(0)] == published


async def test_the_log_keeps_its_newest_twenty_thousand_events(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        for number in range(22_000):
            engine.services.log.publish(an_event(number))
        await engine.services.log.flush()
        oldest, newest = await engine.services.database.events.bounds()
        assert (oldest, newest) == (2_001, 22_000)


def text(words: str, offset: int, block: int = 0, node_id: str = "n1") -> TextDelta:
    return TextDelta(
        conversation_id="c1", task_id="t1", node_id=node_id, block=block, kind="text", offset=offset, text=words
    )


def output(words: str) -> ToolOutput:
    return ToolOutput(conversation_id="c1", task_id="t1", call_id="call", tool="shell", text=words)


def test_pieces_of_one_block_are_joined_and_output_is_replaced() -> None:
    buffer = DeltaBuffer()
    for delta in (text("a", 0), text("b", 1), text("x", 0, block=1), text("c", 2), output("1"), output("2")):
        buffer.add(delta, after=0)
    assert buffer.take(committed=0) == [text("abc", 0), text("x", 0, block=1), output("2")]
    assert buffer.is_empty
    assert buffer.take(committed=0) == []


def test_text_waits_for_the_event_that_was_published_before_it() -> None:
    buffer = DeltaBuffer()
    buffer.add(text("a", 0), after=5)
    assert buffer.take(committed=4) == []
    assert not buffer.is_empty
    assert buffer.take(committed=5) == [text("a", 0)]


def test_a_retry_starts_the_node_anew() -> None:
    buffer = DeltaBuffer()
    buffer.add(text("thought", 0), after=0)
    buffer.add(text("half", 0, block=1), after=0)
    buffer.take(committed=0)
    buffer.add(text("more", 4, block=1), after=0)
    buffer.add(text("again", 0), after=0)
    assert buffer.take(committed=0) == [text("again", 0)]
    assert buffer.so_far("c1") == [text("again", 0)]


def test_what_was_sent_of_unfinished_nodes_can_be_told_again() -> None:
    buffer = DeltaBuffer()
    buffer.add(text("ab", 0), after=0)
    buffer.add(text("z", 0, node_id="n2"), after=0)
    buffer.take(committed=0)
    buffer.add(text("cd", 2), after=0)
    buffer.take(committed=0)
    buffer.add(text("not sent", 4), after=0)
    buffer.finish(node("n2"))
    assert buffer.so_far("c1") == buffer.so_far(None) == [text("abcd", 0)]
    assert buffer.so_far("c2") == []


def test_a_finished_node_drops_what_waits_for_it_and_its_calls() -> None:
    buffer = DeltaBuffer()
    buffer.add(text("a", 0), after=0)
    buffer.add(output("1"), after=0)
    buffer.finish(node("n1", status="streaming"))
    assert not buffer.is_empty
    result = ToolResultBlock(call_id="call", tool="shell", text="12", is_error=False)
    buffer.finish(node("n1"))
    buffer.finish(msgspec.structs.replace(node("n2"), blocks=(result,), task_id="t1"))
    assert buffer.is_empty


def test_output_of_calls_under_one_id_in_two_tasks_is_kept_apart() -> None:
    buffer = DeltaBuffer()
    other = msgspec.structs.replace(output("2"), conversation_id="c2", task_id="t2")
    buffer.add(output("1"), after=0)
    buffer.add(other, after=0)
    assert buffer.take(committed=0) == [output("1"), other]


def test_a_flood_of_output_is_cut_to_its_end() -> None:
    buffer = DeltaBuffer()
    for number in range(3):
        buffer.add(output(f"{number:04}" * 100_000), after=0)
    (sent,) = buffer.take(committed=0)
    assert len(sent.text) == 64 * 1024
    assert sent.text.endswith("0002")
