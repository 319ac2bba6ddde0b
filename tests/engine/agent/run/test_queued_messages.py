"""Messages to a running task: stored until they are read, and editable until then."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from errand.engine.agent.history.attachments import Attachments
from errand.engine.agent.loop.events import AgentEvent, MessageStart
from errand.engine.agent.loop.loop import run_loop
from errand.engine.agent.loop.run_state import LoopConfig, LoopRun
from errand.engine.agent.run.queued_messages import QueuedMessages, without_entry
from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.errors import Busy, Conflict, IllegalMove, InvalidParams
from errand.engine.core.messages import text_of, user_text
from errand.engine.event_log import Frame
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import Node
from errand.protocol.events import AgentUpdate, ConversationUpdate, Delta, EventRecord
from errand.protocol.tasks.groups import Queued
from errand.protocol.tasks.methods import TaskMessageParams, TaskQueueChangeParams, TaskQueueRemoveParams
from errand.protocol.tasks.task import Task
from tests.support import records
from tests.support.engine_parts import EngineParts, branch, crash, engine_parts
from tests.support.loop_parts import WrittenStream, reply
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply

UPDATE = Call("send_update", {"message": "hi"})


def texts(task: Task) -> list[tuple[str, str]]:
    return [(entry.kind, entry.text) for entry in task.queue]


def said(nodes: Sequence[Node]) -> list[str]:
    """The user messages in the tree, in order."""
    blocks = [block for node in nodes if node.role == "user" for block in node.blocks]
    return [block.text for block in blocks if isinstance(block, TextBlock)]


async def change(engine: EngineParts, entry: Queued, task_id: str, **changes: str | int) -> Task:
    params = {"taskId": task_id, "queuedId": entry.id, **changes}
    return await engine.services.runner.messages.change(msgspec.convert(params, TaskQueueChangeParams))


async def test_queued_messages_are_stored_and_shown_until_they_are_read(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[Reply(calls=(UPDATE,), gate=gate), Reply(text="Steered."), Reply(text="Followed.")])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        await engine.say(started.id, "and then this", "follow_up")
        task = await engine.say(started.id, "rather that")
        assert texts(task) == [("follow_up", "and then this"), ("steer", "rather that")]
        assert await engine.services.database.tasks.get(started.id) == task
        gate.set()
        ended = await engine.watcher.end(started.id)
        assert (ended.outcome.summary, ended.queue) == ("Followed.", ())
        assert said(engine.watcher.nodes()) == ["go", "rather that", "and then this"]


async def test_queued_message_with_a_known_id_is_not_queued_twice(tmp_path: Path) -> None:
    """A client whose answer was lost with an engine resends them to an engine where the task is interrupted."""
    gate = asyncio.Event()
    server = ModelServer(replies=[Reply(calls=(UPDATE,), gate=gate)])
    message_fields = {"text": "rather that", "queuedId": "queued_1"}
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        params = msgspec.convert({"taskId": started.id, **message_fields}, TaskMessageParams)
        once = await engine.services.runner.messages.add(params, "steer")
        again = await engine.services.runner.messages.add(params, "steer")
        assert texts(once) == texts(again) == [("steer", "rather that")]
    async with engine_parts(tmp_path, ModelServer()) as engine:
        later = await engine.services.runner.messages.add(params, "steer")
        assert (later.activity.status, texts(later)) == ("interrupted", [("steer", "rather that")])


async def test_queued_message_can_be_edited_moved_sent_now_and_removed(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=(UPDATE,), gate=gate), *(Reply(text=f"{number}.") for number in range(3))]
    server = ModelServer(replies=replies)
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        for text in ("one", "two", "three", "four"):
            task = await engine.say(started.id, text, "follow_up")
        first, second, third, fourth = task.queue
        await change(engine, first, started.id, text="first")
        assert [text for _, text in texts(await change(engine, third, started.id, place=0))] == [
            "three",
            "first",
            "two",
            "four",
        ]
        await engine.services.runner.messages.remove(TaskQueueRemoveParams(task_id=started.id, queued_id=fourth.id))
        task = await change(engine, second, started.id, kind="steer")
        assert texts(task) == [("follow_up", "three"), ("follow_up", "first"), ("steer", "two")]
        with pytest.raises(Conflict):
            await change(engine, fourth, started.id, text="again")
        with pytest.raises(InvalidParams):
            await change(engine, first, started.id, text="  ")
        with pytest.raises(InvalidParams):
            await change(engine, first, started.id, place=-1)
        gate.set()
        await engine.watcher.end(started.id)
        assert said(engine.watcher.nodes()) == ["go", "two", "three", "first"]
        with pytest.raises(IllegalMove, match="completed"):
            await change(engine, first, started.id, text="too late")


async def test_message_that_the_agent_has_read_cannot_be_changed(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer()) as engine:
        log = engine.services.log
        log.publish(ConversationUpdate(conversation=records.conversation()))
        log.publish(AgentUpdate(agent=records.agent()))
        live = TaskState(records.task(), log)
        queue = QueuedMessages(live, Attachments(tmp_path))
        in_hand: list[Queued] = []

        async def listen(event: AgentEvent) -> None:
            if isinstance(event, MessageStart) and text_of(event.message) == "rather that":
                in_hand.append(live.task.queue[0])
                queue.edit(lambda queue: without_entry(queue, "later"))
                with pytest.raises(Conflict, match="has read it"):
                    queue.edit(lambda queue: without_entry(queue, "now"))

        loop = LoopRun(
            config=LoopConfig(stream=WrittenStream(reply("ok"), reply("ok"))),
            emit=listen,
            cancel=CancelSignal(),
            steering=queue.steering,
            follow_ups=queue.follow_ups,
            messages=[],
            model="test/model",
        )
        now = Queued(id="now", kind="steer", text="rather that", queued_at=records.NOW)
        queue.add(now)
        queue.add(Queued(id="later", kind="follow_up", text="and this", queued_at=records.NOW))
        await run_loop(loop, (user_text("go"),))
        assert in_hand == [now]
        assert live.task.queue == (now,)


async def test_stopped_task_keeps_its_unread_messages(tmp_path: Path) -> None:
    server = ModelServer(replies=[Reply(text="A long story", stall_after=2)])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        await engine.say(started.id, "rather that")
        await engine.services.runner.stop(started.id, "me")
        assert texts(await engine.watcher.end(started.id)) == [("steer", "rather that")]


async def test_queue_length_is_limited(tmp_path: Path) -> None:
    server = ModelServer(replies=[Reply(text="A long story", stall_after=2)])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        await asyncio.gather(*(engine.say(started.id, f"{number}") for number in range(100)))
        with pytest.raises(Busy, match="100 texts wait"):
            await engine.say(started.id, "one more")


async def test_total_text_of_a_queue_is_limited(tmp_path: Path) -> None:
    server = ModelServer(replies=[Reply(text="A long story", stall_after=2)])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        await engine.say(started.id, "x" * 900_000)
        with pytest.raises(Busy, match="Too much text waits"):
            await engine.say(started.id, "y" * 900_000)
        await engine.say(started.id, "short")


async def test_queued_messages_survive_a_crash_and_are_read_once(tmp_path: Path) -> None:
    after = tmp_path / "after"
    server = ModelServer(replies=[Reply(text="A long story", stall_after=5)])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        await engine.say(started.id, "and then this", "follow_up")
        waiting = (await engine.say(started.id, "rather that")).queue
        port = crash(engine, after)
    replies = [Reply(text="Steered."), Reply(text="Followed.")]
    async with engine_parts(after, ModelServer(replies=replies, port=port)) as engine:
        task = await engine.services.database.tasks.get(started.id)
        assert task is not None and (task.activity.status, task.queue) == ("interrupted", waiting)
        task = await change(engine, waiting[0], started.id, text="and after that")
        assert await engine.services.database.tasks.get(started.id) == task
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).queue == ()
        assert said(engine.watcher.nodes()) == ["rather that", "and after that"]


@dataclass(slots=True)
class Commits:
    """A record of which of the given texts a killed engine would leave in the tree or the queue at each commit."""

    database: Path
    texts: tuple[str, ...]
    texts_by_commit: list[list[str]] = field(default_factory=list[list[str]])

    def on_event(self, record: EventRecord, frame: Frame) -> None:
        with closing(sqlite3.connect(f"{self.database.as_uri()}?mode=ro", uri=True)) as connection:
            nodes = connection.execute("SELECT body FROM nodes WHERE role = 'user' ORDER BY number").fetchall()
            tasks = connection.execute("SELECT json_extract(body, '$.queue') FROM tasks").fetchall()
        here = said([msgspec.json.decode(body, type=Node) for (body,) in nodes])
        waiting = [entry.text for (queue,) in tasks for entry in msgspec.json.decode(queue, type=tuple[Queued, ...])]
        self.texts_by_commit.append([text for text in (*here, *waiting) if text in self.texts])

    def on_delta(self, delta: Delta, data: bytes) -> None:
        """Not stored."""


async def test_at_every_commit_each_message_is_in_the_queue_or_in_the_tree_but_never_in_both(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = ModelServer(replies=[Reply(calls=(UPDATE,), gate=gate), *(Reply(text=f"{n}.") for n in range(6))])
    message_texts = tuple(f"text {number}" for number in range(6))
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        for number, text in enumerate(message_texts):
            await engine.say(started.id, text, "steer" if number % 2 else "follow_up")
        commits = Commits(engine.services.paths.database, message_texts)
        detach = engine.services.log.attach(commits)
        gate.set()
        assert (await engine.watcher.end(started.id)).queue == ()
        detach()
        assert len(commits.texts_by_commit) > len(message_texts)
        assert all(sorted(stored_texts) == sorted(message_texts) for stored_texts in commits.texts_by_commit)


async def test_orderly_shutdown_keeps_the_queue_and_does_not_report_it_as_unread(tmp_path: Path) -> None:
    server = ModelServer(replies=[Reply(text="A long story", stall_after=2)])
    async with engine_parts(tmp_path, server) as engine:
        started = await engine.start()
        await server.request(0)
        await engine.say(started.id, "rather that")
        await engine.services.runner.close()
        task = engine.watcher.tasks(started.id)[-1]
        assert (task.activity.status, texts(task)) == ("interrupted", [("steer", "rather that")])
        assert "Not read" not in str(engine.watcher.nodes()[-1].blocks)


async def test_message_read_before_a_crash_is_not_read_again(tmp_path: Path) -> None:
    after = tmp_path / "after"
    gate = asyncio.Event()
    update = Reply(calls=(Call("send_update", {"message": "hi"}),), gate=gate)
    async with engine_parts(tmp_path, ModelServer(replies=[update, Reply(text="Slow", stall_after=0)])) as engine:
        started = await engine.start()
        word = TaskMessageParams(task_id=started.id, text="be quick", queued_id="word_1")
        await engine.services.runner.messages.add(word, "steer")
        gate.set()
        await engine.watcher.until(lambda: "be quick" in said(engine.watcher.nodes()))
        await engine.services.log.flush()
        port = crash(engine, after)
    async with engine_parts(after, ModelServer(replies=[DONE], port=port)) as engine:
        services = engine.services
        assert (await services.runner.messages.add(word, "steer")).queue == ()
        await services.runner.resume(started.id)
        assert (await services.runner.messages.add(word, "steer")).queue == ()
        await engine.watcher.end(started.id)
        nodes = await branch(engine, started.conversation_id)
        assert said(nodes) == ["go", "be quick"]
