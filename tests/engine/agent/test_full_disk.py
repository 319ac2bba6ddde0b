"""A database that cannot be written: tasks end with a clear error, the engine goes on, and nothing shown is lost."""

import asyncio
from pathlib import Path

import pytest

from app.engine.errors import StorageError
from app.protocol.blocks import NoticeBlock, TextBlock
from tests.support.engine_parts import engine_parts
from tests.support.full_disk import full_disk
from tests.support.model_server import Call, ModelServer, Reply

UPDATE = Reply(text="Half way.", calls=(Call("send_update", {"message": "hi"}),))


async def test_a_task_that_cannot_be_saved_is_not_started(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Hello.")])) as engine:
        with full_disk(engine.services.paths.database), pytest.raises(StorageError, match="disk is full"):
            await engine.start()
        assert engine.model.requests == []
        task = await engine.watcher.end((await engine.start()).id)
        assert (task.status, task.summary) == ("completed", "Hello.")


async def test_a_full_disk_ends_tasks_without_a_further_step_and_their_end_is_saved_when_there_is_room(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    reply = Reply(text="Half way.", calls=(Call("shell", {"command": "touch made.txt"}),), gate=gate)
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: reply)) as engine:
        started = await asyncio.gather(engine.start(), engine.start())
        await engine.model.request(1)
        with full_disk(engine.services.paths.database):
            gate.set()
            for request in engine.model.requests:
                await asyncio.wait_for(request.served.wait(), 5)
            with pytest.raises(StorageError):
                await engine.start("another")
        ended = [await engine.watcher.end(task.id) for task in started]
        assert [(task.status, task.stop_reason) for task in ended] == [("error", "error")] * 2
        assert all(task.error is not None and "disk is full" in task.error for task in ended)
        assert not (engine.workspace / "made.txt").exists()
        assert len(engine.model.requests) == 2


async def test_what_was_said_before_the_disk_was_full_stays_one_branch(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply(text="Half way.", calls=UPDATE.calls, gate=gate), Reply(text="I remember.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        started = await engine.start("Remember seven.")
        await engine.model.request(0)
        with full_disk(engine.services.paths.database):
            gate.set()
            await asyncio.wait_for(engine.model.requests[0].served.wait(), 5)
            with pytest.raises(StorageError):
                await engine.start("another")
        await engine.watcher.end(started.id)
        (agent,) = await engine.services.database.agents.list(started.conversation_id)
        assert agent.head_id is not None
        path = await engine.services.database.nodes.path(agent.head_id)
        assert path[0].blocks == (TextBlock(text="Remember seven."),)
        assert TextBlock(text="Half way.") in path[1].blocks
        (notice,) = path[-1].blocks
        assert isinstance(notice, NoticeBlock) and notice.kind == "error"
        second = await engine.start("What was it?", conversation_id=started.conversation_id)
        assert (await engine.watcher.end(second.id)).summary == "I remember."
        assert "Remember seven." in str(engine.model.requests[1].messages)


async def test_an_engine_ends_also_while_the_end_of_a_task_cannot_be_saved(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Hello.", gate=gate)])) as engine:
        started = await engine.start()
        await engine.model.request(0)
        blocked = full_disk(engine.services.paths.database)
        blocked.__enter__()
        gate.set()
        await asyncio.wait_for(engine.model.requests[0].served.wait(), 5)
    blocked.__exit__(None, None, None)
    async with engine_parts(tmp_path, ModelServer()) as engine:
        task = await engine.services.database.tasks.get(started.id)
        assert task is not None and task.status == "interrupted"


async def test_words_that_could_not_be_saved_are_refused_and_not_read(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply(calls=UPDATE.calls, gate=gate), Reply(text="Done.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        started = await engine.start()
        await engine.model.request(0)
        with full_disk(engine.services.paths.database):
            with pytest.raises(StorageError, match="disk is full"):
                await engine.say(started.id, "rather that")
            with pytest.raises(StorageError):
                await engine.services.log.flush()
        assert [entry.text for entry in (await engine.say(started.id, "or this")).queue] == ["or this"]
        gate.set()
        assert (await engine.watcher.end(started.id)).summary == "Done."
        assert "rather that" not in str(engine.model.requests[1].messages)
        assert "or this" in str(engine.model.requests[1].messages)
