"""A streaming reply, as seen by clients that subscribed before it and during it."""

from pathlib import Path

from errand.engine.agent.history.attachments import Attachments
from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.loop.events import MessageUpdate
from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.agent.run.queued_messages import QueuedMessages
from errand.engine.agent.run.recorder import TaskRecorder, ToolExecutionLog
from errand.engine.agent.run.task_context import TaskContext
from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.messages import AssistantMessage, Text
from errand.engine.models.base import BlockDelta, ModelRequest
from errand.protocol.blocks import TextBlock, ThinkingBlock
from errand.protocol.events import TextDelta
from errand.protocol.tasks.task import replace_fields
from tests.support.engine_parts import engine_parts
from tests.support.model_server import ModelServer, Reply
from tests.support.processes import until


async def test_client_that_connects_during_a_reply_gets_all_of_it(tmp_path: Path) -> None:
    reply = Reply(thinking="Let me see.", text="A long story", stall_after=5)
    async with engine_parts(tmp_path, ModelServer(replies=[reply])) as engine:
        started = await engine.start()
        log, database = engine.services.log, engine.services.database
        deltas = log.deltas
        await until(
            lambda: (
                [delta.text for delta in deltas.text_so_far(started.conversation_id)] == ["Let me see.", "A long story"]
            )
        )
        assert [delta.offset for delta in deltas.text_so_far(started.conversation_id)] == [0, 0]
        await log.flush()
        (agent,) = await database.agents.list(started.conversation_id)
        (newest,), _ = await database.nodes.branch(agent.head_id or "", limit=1)
        assert newest.status == "streaming"
        assert newest.blocks == (ThinkingBlock(text="Let me see."), TextBlock(text="A long story"))
        assert {delta.node_id for delta in deltas.text_so_far(started.conversation_id)} == {newest.id}
        await engine.services.runner.stop(started.id, "me")
        await engine.watcher.end(started.id)
        assert deltas.text_so_far(started.conversation_id) == []


async def test_deltas_of_a_reply_add_up_to_its_text(tmp_path: Path) -> None:
    text = "piece by piece " * 20
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text=text, piece_delay_s=0.005)])) as engine:
        await engine.watcher.end((await engine.start()).id)
        so_far = ""
        for delta in engine.watcher.deltas:
            assert isinstance(delta, TextDelta) and delta.offset == len(so_far)
            so_far += delta.text
        assert so_far and text.startswith(so_far)


async def test_abandoned_reply_is_stored_as_cut_and_its_call_is_closed(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Hello.")])) as engine:
        task = await engine.watcher.end((await engine.start()).id)
        log, database = engine.services.log, engine.services.database
        (agent,) = await database.agents.list(task.conversation_id)
        branch = BranchWriter(agent, log)
        live = TaskState(replace_fields(task, status="running", ended_at=None), log)
        queue = QueuedMessages(live, Attachments(tmp_path))
        context = TaskContext(live, branch, queue, PendingAsks(log, database.asks), log, database)
        recorder = TaskRecorder(context, ToolExecutionLog(task.id, database.journal), lambda model: False, 0)
        recorder.turn_started(ModelRequest(task.request.model, "", ()))
        partial = AssistantMessage((Text("Half"),))
        await recorder.on_event(MessageUpdate(partial, BlockDelta("text", 0, "Half", partial)))
        await engine.watcher.until(lambda: engine.watcher.nodes()[-1].status == "streaming")
        recorder.close()
        await branch.save()
        reply = await database.nodes.get(branch.position.node_id or "")
        assert reply is not None and (reply.status, reply.blocks) == ("cut", (TextBlock(text="Half"),))
        assert await database.turns.started(task.id) == ()
        assert await database.nodes.streaming() == ()
