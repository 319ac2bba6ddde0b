"""An engine that dies, and the state its successor finds. The files are copied as a crash leaves them."""

import asyncio
from pathlib import Path

from errand.engine.agent.history.conversion import NOT_RUN
from errand.protocol.blocks import TextBlock
from errand.protocol.events import TextDelta
from tests.support.engine_parts import EngineParts, branch, crash, engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.stored_records import on_both


def _kinds(engine: EngineParts) -> set[str]:
    return {delta.kind for delta in engine.watcher.deltas if isinstance(delta, TextDelta)}


@on_both
async def test_reply_interrupted_by_a_crash_is_kept_as_cut(tmp_path: Path) -> None:
    after = tmp_path / "after"
    reply = Reply(text="A long story", calls=(Call("shell", {"command": "true"}),), stall_after=5)
    async with engine_parts(tmp_path, ModelServer(replies=[reply])) as engine:
        started = await engine.start()
        await engine.watcher.until(lambda: "toolCall" in _kinds(engine))
        await engine.services.log.flush()
        port = crash(engine, after)
    async with engine_parts(after, ModelServer(replies=[DONE], port=port)) as engine:
        _, cut = await branch(engine, started.conversation_id)
        assert (cut.status, cut.blocks[0]) == ("cut", TextBlock(text="A long story"))
        await engine.services.runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert engine.model.requests[0].messages[-1]["content"] == NOT_RUN


async def test_the_stored_head_is_always_the_newest_node(tmp_path: Path) -> None:
    gate = asyncio.Event()
    slow = Reply(text="A story that takes a while.", piece_delay_s=0.02, calls=(Call("send_update", {"message": "x"}),))
    async with engine_parts(tmp_path, ModelServer(replies=[slow, Reply(text="End.", gate=gate)])) as engine:
        started = await engine.start()
        heads: list[tuple[int, str | None]] = []
        for count in (2, 3):
            await engine.watcher.until(lambda count=count: len(engine.watcher.nodes()) >= count)
            published = len(engine.watcher.nodes())
            (agent,) = await engine.services.database.agents.list(started.conversation_id)
            heads.append((published, agent.head_id))
        gate.set()
        await engine.watcher.end(started.id)
        nodes = [node.id for node in engine.watcher.nodes()]
    # What is published meanwhile may be stored already; what was published before must be.
    assert all(head in nodes[published - 1 :] for published, head in heads)
