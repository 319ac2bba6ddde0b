"""The minimum interval between model calls, and a pause within it."""

import time
from pathlib import Path

from tests.support.engine_parts import engine_parts
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
        await engine.watcher.task(started.id, lambda task: task.activity.startswith("next model call"))
        await runner.pause(started.id)
        await engine.watcher.task(started.id, lambda task: task.status == "paused")
        assert len(times) == 1
        await runner.resume(started.id)
        assert (await engine.watcher.end(started.id)).status == "completed"
        assert len(times) == 3
        assert times[-1] - begun_at >= 2 * PAUSE_S


async def test_stop_during_the_interval_between_calls_ends_the_task_at_once(tmp_path: Path) -> None:
    async with engine_parts(tmp_path, ModelServer(answer=lambda request: UPDATE)) as engine:
        engine.services.settings.set("seconds_between_calls", 3600)
        started = await engine.start()
        await engine.watcher.task(started.id, lambda task: task.activity.startswith("next model call"))
        await engine.services.runner.stop(started.id, "me")
        assert (await engine.watcher.end(started.id)).status == "cancelled"
        assert len(engine.model.requests) == 1
