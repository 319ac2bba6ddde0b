"""Tool steps: one task and fifty, through engine and protocol, against the bare loop in the same run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from app.client.connection import Connection
from app.protocol.engine import EmptyParams, EngineStatusResult
from app.protocol.wire import ENGINE_STATUS
from tests.benchmarks.bench import Row, engine, home, median, model, run_tasks

_STEPS = 100
_TASKS = 50
_TASK_STEPS = 20
_ROUNDS = 3


def _floor(url: str, tasks: int) -> "dict[str, float]":
    command = [sys.executable, "-m", "tests.benchmarks.floor", url, str(tasks)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


async def _status(connection: Connection) -> EngineStatusResult:
    return await connection.call(ENGINE_STATUS, EmptyParams())


async def one_task() -> list[Row]:
    walls: list[float] = []
    cpus: list[float] = []
    floors: list[dict[str, float]] = []
    with home() as folder, model(_STEPS) as server:
        async with engine(folder) as connection:
            idle = (await _status(connection)).memory_bytes
            await run_tasks(connection, server.url, 1, folder)
            for _ in range(_ROUNDS):
                floors.append(_floor(server.url, 1))
                before, started = await _status(connection), time.perf_counter()
                await run_tasks(connection, server.url, 1, folder)
                walls.append((time.perf_counter() - started) / _STEPS * 1000)
                cpus.append(((await _status(connection)).cpu_seconds - before.cpu_seconds) / _STEPS * 1000)
    wall_floor = median([floor["wall_s"] for floor in floors]) / _STEPS * 1000
    cpu_floor = median([floor["cpu_s"] for floor in floors]) / _STEPS * 1000
    return [
        Row("a tool step of one task (with its echo)", median(walls), "ms", 6.0, wall_floor),
        Row("engine CPU a step", median(cpus), "ms", 4.0, cpu_floor),
        Row("engine memory idle (PSS)", idle / 1e6, "MB", 80.0),
    ]


async def fifty_tasks() -> list[Row]:
    with home() as folder, model(_TASK_STEPS) as server:
        workspace = Path(os.environ["ERRAND_HOME"])
        floor = _TASKS * _TASK_STEPS / _floor(server.url, _TASKS)["wall_s"]
        async with engine(folder) as connection:
            started = time.perf_counter()
            await run_tasks(connection, server.url, _TASKS, workspace)
            rate = _TASKS * _TASK_STEPS / (time.perf_counter() - started)
            status = await _status(connection)
    return [
        Row("50 tasks of 20 steps", rate, "steps/s", 200.0, floor, more_is_better=True),
        Row("engine memory with 50 tasks (PSS)", status.memory_bytes / 1e6, "MB", 130.0),
        Row("event-loop stall with 50 tasks, p99", status.loop_stall_p99_ms, "ms", 20.0),
        Row("event-loop stall with 50 tasks, max", status.loop_stall_max_ms, "ms", 50.0),
    ]
