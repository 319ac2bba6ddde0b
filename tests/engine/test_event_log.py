"""The event log: numbers, commits, fan-out, and retention."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from errand.engine.event_log import DeltaStream, TaskChanges
from errand.protocol.blocks import ToolResultBlock
from errand.protocol.conversations import Conversation
from errand.protocol.events import ConversationUpdate, Delta, TaskUpdate, TextDelta, ToolOutput
from errand.protocol.methods import Notice
from errand.protocol.tasks.change import TaskChange
from errand.protocol.tasks.task import Task, replace_fields
from errand.system.listeners import Listeners
from tests.support.engine_parts import engine_parts
from tests.support.model_replies import DONE, shell
from tests.support.model_server import ModelServer
from tests.support.records import NOW, node, task


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


def text(content: str, offset: int, block: int = 0, node_id: str = "n1") -> TextDelta:
    return TextDelta(
        conversation_id="c1", task_id="t1", node_id=node_id, block=block, kind="text", offset=offset, text=content
    )


def output(content: str) -> ToolOutput:
    return ToolOutput(conversation_id="c1", task_id="t1", call_id="call", tool="shell", text=content)


class Receiver:
    """A client that keeps what is sent to it."""

    def __init__(self) -> None:
        self._sent: list[Delta] = []
        listeners = Listeners[[Delta, bytes]]()
        listeners.add(self.on_delta)
        self.stream = DeltaStream(listeners, committed=0)

    def on_delta(self, delta: Delta, data: bytes) -> None:
        assert msgspec.json.decode(data) == msgspec.to_builtins(Notice("delta", delta))
        self._sent.append(delta)

    def take(self) -> list[Delta]:
        """Send at once instead of after the 33 ms, and return the deltas since the last call."""
        self.stream.send()
        sent, self._sent = self._sent, []
        return sent


async def test_deltas_of_one_block_are_joined_and_output_is_replaced() -> None:
    receiver = Receiver()
    stream = receiver.stream
    for delta in (text("a", 0), text("b", 1), text("x", 0, block=1), text("c", 2), output("1"), output("2")):
        stream.add(delta, after=0)
    assert receiver.take() == [text("abc", 0), text("x", 0, block=1), output("2")]
    assert stream.is_empty
    assert receiver.take() == []


async def test_text_waits_for_the_event_that_was_published_before_it() -> None:
    receiver = Receiver()
    stream = receiver.stream
    stream.add(text("a", 0), after=5)
    stream.committed(4)
    assert receiver.take() == []
    assert not stream.is_empty
    stream.committed(5)
    assert receiver.take() == [text("a", 0)]


async def test_retry_restarts_the_node() -> None:
    receiver = Receiver()
    stream = receiver.stream
    stream.add(text("thought", 0), after=0)
    stream.add(text("half", 0, block=1), after=0)
    receiver.take()
    stream.add(text("more", 4, block=1), after=0)
    stream.add(text("again", 0), after=0)
    assert receiver.take() == [text("again", 0)]
    assert stream.text_so_far("c1") == [text("again", 0)]


async def test_text_sent_of_unfinished_nodes_can_be_sent_again() -> None:
    receiver = Receiver()
    stream = receiver.stream
    stream.add(text("ab", 0), after=0)
    stream.add(text("z", 0, node_id="n2"), after=0)
    receiver.take()
    stream.add(text("cd", 2), after=0)
    receiver.take()
    stream.add(text("not sent", 4), after=0)
    stream.finish(node("n2"))
    assert stream.text_so_far("c1") == stream.text_so_far(None) == [text("abcd", 0)]
    assert stream.text_so_far("c2") == []


async def test_finished_node_drops_its_pending_deltas() -> None:
    receiver = Receiver()
    stream = receiver.stream
    stream.add(text("a", 0), after=0)
    stream.add(output("1"), after=0)
    stream.finish(node("n1", status="streaming"))
    assert not stream.is_empty
    result = ToolResultBlock(call_id="call", tool="shell", text="12", is_error=False)
    stream.finish(node("n1"))
    stream.finish(msgspec.structs.replace(node("n2"), blocks=(result,), task_id="t1"))
    assert stream.is_empty


async def test_output_of_equal_call_ids_in_two_tasks_is_separate() -> None:
    receiver = Receiver()
    stream = receiver.stream
    other = msgspec.structs.replace(output("2"), conversation_id="c2", task_id="t2")
    stream.add(output("1"), after=0)
    stream.add(other, after=0)
    assert receiver.take() == [output("1"), other]


async def test_flood_of_output_is_truncated_to_its_end() -> None:
    receiver = Receiver()
    stream = receiver.stream
    for number in range(3):
        stream.add(output(f"{number:04}" * 100_000), after=0)
    (sent,) = receiver.take()
    assert isinstance(sent, ToolOutput)
    assert len(sent.text) == 64 * 1024
    assert sent.text.endswith("0002")


async def test_the_request_of_a_task_is_stored_once(tmp_path: Path) -> None:
    server = ModelServer(turns=[shell("true"), shell("true"), DONE])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start("A request of many words.")
        ended = await engine.watcher.end(started.id)
        await engine.services.log.flush()
        log = [record.event for record in await engine.services.database.events.after(0)]
        stored = [event for event in log if isinstance(event, TaskUpdate | TaskChange)]
        published = [event for event in engine.watcher.events if isinstance(event, TaskUpdate)]
        assert len(stored) == len(published) > 5
        assert [event for event in stored if isinstance(event, TaskUpdate) or event.request] == stored[:1]
        state, states = started, list[Task]()
        for event in stored:
            state = event.task if isinstance(event, TaskUpdate) else event.applied_to(state)
            states.append(state)
        assert states == [event.task for event in published]
        assert states[-1] == ended == await engine.services.database.tasks.get(started.id)


def test_what_a_lost_event_may_have_had_is_sent_with_the_next() -> None:
    changes = TaskChanges()
    assert changes.publish(task(), 1) is None
    assert changes.publish(task(step_count=1), 2) is None, "nobody has all of it yet"
    changes.committed(task(), 2)
    change = changes.publish(replace_fields(task(step_count=1), detail="planning"), 3)
    assert change is not None and (change.activity is None, change.progress) == (False, None)
    again = changes.publish(replace_fields(task(step_count=2), detail="planning"), 4)
    assert again is not None and None not in (again.activity, again.progress)
    changes.committed(task(), 4)
    last = changes.publish(replace_fields(task(step_count=3), detail="planning"), 5)
    assert last is not None and (last.activity, last.progress is None) == (None, False)


def test_a_task_is_whole_again_after_its_end_or_when_its_agent_changes() -> None:
    changes = TaskChanges()
    changes.publish(task(), 1)
    changes.committed(task(), 1)
    assert changes.publish(replace_fields(task(), agent_id="a2"), 2) is None
    changes.committed(task(), 2)
    end = changes.publish(replace_fields(task(), agent_id="a2", ended_at=NOW), 3)
    assert end is not None and end.outcome is not None
    assert changes.publish(replace_fields(task(), agent_id="a2", ended_at=NOW, summary="later"), 4) is None
