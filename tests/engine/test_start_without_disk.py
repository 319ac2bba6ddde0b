"""An engine that starts while nothing can be saved: reads work, and everything continues once that is fixed."""

from pathlib import Path

from errand.engine.server.session import ALL, Subscription
from errand.engine.server.snapshot import snapshot, with_running_tasks
from errand.protocol.tasks.task import Task
from tests.support.disks import full_disk
from tests.support.engine_parts import EngineParts, crash, engine_parts
from tests.support.model_replies import DONE
from tests.support.model_server import ModelServer, Reply


async def crashed(tmp_path: Path, after: Path) -> tuple[Task, int]:
    """A task whose engine dies in the middle of a reply, copied to another home; returns the model server's port."""
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(text="Slow", stall_after=0)])) as engine:
        task = await engine.start()
        await engine.model.request(0)
        await engine.services.log.flush()
        return task, crash(engine, after)


async def shown(engine: EngineParts, why: str) -> Task:
    stored_snapshot = await snapshot(engine.services.database, Subscription(ALL, "summary", since=0))
    (task,) = with_running_tasks(stored_snapshot, engine.services.runner.running.shown(), why).tasks
    return task


async def test_engine_starts_on_a_full_disk_and_continues_when_there_is_space(tmp_path: Path) -> None:
    after = tmp_path / "after"
    task, port = await crashed(tmp_path, after)
    model = ModelServer(replies=[DONE], port=port)
    with full_disk(after / "data" / "errand.db"):
        started = engine_parts(after, model)
        engine = await started.__aenter__()
        database = engine.services.database
        assert [condition.kind for condition in database.health.conditions] == ["disk_full"]
        stored = await database.tasks.get(task.id)
        assert stored is not None
        assert stored.activity.status == "thinking"
        left = await shown(engine, "The disk is full.")
        assert (left.activity.status, left.activity.detail) == ("interrupted", "The disk is full.")
    try:
        await engine.watcher.task(task.id, lambda task: task.activity.status == "interrupted")
        assert not database.health.conditions
        await engine.services.runner.resume(task.id)
        assert (await engine.watcher.end(task.id)).activity.status == "completed"
    finally:
        await started.__aexit__(None, None, None)


async def test_engine_stopped_before_the_disk_is_repaired_changes_nothing(tmp_path: Path) -> None:
    after = tmp_path / "after"
    task, port = await crashed(tmp_path, after)
    with full_disk(after / "data" / "errand.db"):
        async with engine_parts(after, ModelServer(port=port)) as engine:
            assert engine.services.database.health.blocking_condition is not None
    async with engine_parts(after, ModelServer(port=port)) as engine:
        stored = await engine.services.database.tasks.get(task.id)
        assert stored is not None
        assert stored.activity.status == "interrupted"
