"""The minimum interval between model calls, and a pause within it."""

import time
from pathlib import Path

from errand.protocol.asks import AskAnswerParams
from errand.protocol.tasks.groups import TaskStatus
from errand.protocol.tasks.task import Task
from tests.support.engine_parts import EngineParts, engine_parts
from tests.support.model_server import Call, ModelServer, Reply

UPDATE = Reply(calls=(Call("send_update", {"message": "hi"}),))
PAUSE_S = 0.3


async def test_model_calls_keep_their_minimum_interval_also_after_a_pause(tmp_path: Path) -> None:
    times: list[float] = []

    def answer(_: object) -> Reply:
        times.append(time.monotonic())
        return UPDATE if len(times) < 3 else Reply(text="Done.")

    async with engine_parts(tmp_path, ModelServer(answer=answer)) as engine:
        engine.services.settings.set("seconds_between_calls", PAUSE_S)
        runner = engine.services.runner
        begun_at = time.monotonic()
        started = await engine.start()
        await engine.watcher.task(started.id, lambda task: task.activity.detail.startswith("next model call"))
        await runner.pause(started.id)
        await engine.watcher.task(started.id, lambda task: task.activity.status == "paused")
        assert len(times) == 1
        await runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).activity.status == "completed"
        assert len(times) == 3
        assert times[-1] - begun_at >= 2 * PAUSE_S


async def test_stop_during_the_interval_between_calls_ends_the_task_at_once(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: UPDATE)) as engine:
        engine.services.settings.set("seconds_between_calls", 3600)
        started = await engine.start()
        await engine.watcher.task(started.id, lambda task: task.activity.detail.startswith("next model call"))
        await engine.services.runner.stop(started.id, "me")
        assert (await engine.watcher.end(started.id)).activity.status == "cancelled"
        assert len(engine.model.requests) == 1


async def allow_until(engine: EngineParts, task_id: str, status: TaskStatus) -> Task:
    """Allow what the task asks until it has this status."""
    settled: set[str | None] = {None}
    while True:
        task = await engine.watcher.task(
            task_id, lambda task: task.activity.status == status or task.activity.ask_id not in settled
        )
        if task.activity.status == status:
            return task
        settled.add(task.activity.ask_id)
        await engine.services.asks.answer(AskAnswerParams(ask_id=task.activity.ask_id or "", allow=True), "me")


async def test_a_task_that_asks_is_paused_after_the_answer(tmp_path: Path) -> None:
    calls = tuple(Call("shell", {"command": f"touch {name}"}) for name in ("a", "b"))
    async with engine_parts(tmp_path, ModelServer(replies=[Reply(calls=calls), Reply(text="Done.")])) as engine:
        runner = engine.services.runner
        started = await engine.start(approve="ask")
        await engine.watcher.ask(started.id)
        paused = await runner.pause(started.id)
        assert (paused.activity.status, paused.activity.pausing) == ("waiting_user", True)
        assert (await allow_until(engine, started.id, "paused")).activity.pausing
        assert not (await runner.resume(started.id)).activity.pausing
        ended = await allow_until(engine, started.id, "completed")
        assert (ended.outcome.error, sorted(path.name for path in engine.workspace.iterdir())) == (None, ["a", "b"])
