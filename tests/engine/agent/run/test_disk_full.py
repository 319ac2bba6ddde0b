"""A database that cannot be written: tasks wait and continue by themselves, and nothing is lost."""

import asyncio
from pathlib import Path

import pytest

from errand.engine.core.resources import Health
from errand.protocol.blocks import TextBlock
from tests.support.disks import full_disk
from tests.support.engine_parts import engine_parts
from tests.support.model_server import Call, ModelServer, ReceivedRequest, Reply
from tests.support.processes import until

UPDATE = Reply(text="Half way.", calls=(Call("send_update", {"message": "hi"}),))


async def held(health: Health) -> None:
    await until(lambda: health.blocking_condition is not None)


async def test_tasks_pause_on_a_full_disk_and_continue_when_there_is_space(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()

    def answer(request: ReceivedRequest) -> Reply:
        if "Half way" in str(request.messages):
            return Reply(text="Done.")
        return Reply(text="Half way.", calls=(Call("shell", {"command": "echo once >> made.txt"}),), gate=gate)

    async with engine_parts(tmp_path, ModelServer(answer=answer)) as engine:
        started = await asyncio.gather(engine.start(), engine.start())
        await engine.model.request(1)
        with full_disk(engine.services.paths.database):
            gate.set()
            for request in engine.model.requests:
                await asyncio.wait_for(request.served.wait(), 5)
            await held(engine.services.database.health)
            running_tasks = engine.services.runner.running.shown()
            assert [task.activity.status for task in running_tasks] == ["paused"] * 2
            assert all(
                "disk is full" in task.activity.detail and "Make at least 100 MB" in task.activity.detail
                for task in running_tasks
            )
            assert not (engine.workspace / "made.txt").exists()
            assert len(engine.model.requests) == 2
        ended = [await engine.watcher.end(task.id) for task in started]
        assert [(task.activity.status, task.outcome.summary) for task in ended] == [("completed", "Done.")] * 2
        assert (engine.workspace / "made.txt").read_text() == "once\n" * 2
        assert engine.services.database.health.conditions == ()


async def test_no_model_is_called_before_the_intent_is_stored(tmp_path: Path) -> None:
    wait = Call("shell", {"command": "touch begun; until [ -e go ]; do sleep 0.01; done"})
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(calls=(wait,)), Reply(text="Done.")])) as engine:
        task = await engine.start()
        await until((engine.workspace / "begun").exists)
        with full_disk(engine.services.paths.database):
            (engine.workspace / "go").touch()
            await held(engine.services.database.health)
            with pytest.raises(TimeoutError):
                await engine.model.request(1, 0.3)
        await engine.model.request(1)
        assert (await engine.watcher.end(task.id)).activity.status == "completed"


async def test_messages_sent_while_the_disk_was_full_are_saved_later_as_one_branch(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = [Reply(text="Half way.", calls=UPDATE.calls, gate=gate), Reply(text="There."), Reply(text="I remember.")]
    async with engine_parts(tmp_path, ModelServer(replies=replies)) as engine:
        started = await engine.start("Remember seven.")
        await engine.model.request(0)
        with full_disk(engine.services.paths.database):
            gate.set()
            await held(engine.services.database.health)
        await engine.watcher.end(started.id)
        (agent,) = await engine.services.database.agents.list(started.conversation_id)
        assert agent.head_id is not None
        path = await engine.services.database.nodes.path(agent.head_id)
        assert path[0].blocks[0] == TextBlock(text="Remember seven.")
        assert TextBlock(text="Half way.") in path[1].blocks
        assert path[-1].blocks == (TextBlock(text="There."),)
        second = await engine.start("What was it?", conversation_id=started.conversation_id)
        assert (await engine.watcher.end(second.id)).outcome.summary == "I remember."
        assert "Remember seven." in str(engine.model.requests[2].messages)


async def test_task_can_be_stopped_while_nothing_can_be_saved(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Hello.", gate=gate)])) as engine:
        started = await engine.start()
        await engine.model.request(0)
        with full_disk(engine.services.paths.database):
            stopped = await engine.services.runner.stop(started.id, "the test")
            assert stopped.activity.stopping
            await held(engine.services.database.health)
        assert (await engine.watcher.end(started.id)).activity.status == "cancelled"


async def test_engine_shuts_down_while_the_end_of_a_task_cannot_be_saved(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Hello.", gate=gate)])) as engine:
        started = await engine.start()
        await engine.model.request(0)
        blocked = full_disk(engine.services.paths.database)
        blocked.__enter__()
        gate.set()
        await asyncio.wait_for(engine.model.requests[0].served.wait(), 5)
        await held(engine.services.database.health)
    blocked.__exit__(None, None, None)
    async with engine_parts(tmp_path, ModelServer()) as engine:
        task = await engine.services.database.tasks.get(started.id)
        assert task is not None and task.activity.status == "interrupted"
