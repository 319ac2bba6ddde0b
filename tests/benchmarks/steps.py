"""Tool steps: one task and fifty, through engine and protocol, compared with the bare loop in the same run."""

import asyncio
import json
import subprocess
import sys
import time

from errand.client.connection import Connection
from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_STATUS, EngineStatusResult
from tests.benchmarks.bench import Row, engine, home, median, model, run_tasks, workspace_in

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
            await run_tasks(connection, server.url, 1, workspace_in(folder))
            for _ in range(_ROUNDS):
                floors.append(_floor(server.url, 1))
                before, started = await _status(connection), time.perf_counter()
                await run_tasks(connection, server.url, 1, workspace_in(folder))
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
    """Medians of several rounds, each with a separate engine, since the machine may be shared."""
    rounds = [await _fifty() for _ in range(_ROUNDS)]
    rates, floors, memory, p99s, worst = zip(*rounds, strict=True)
    return [
        Row("50 tasks of 20 steps", median(rates), "steps/s", 200.0, median(floors), more_is_better=True),
        Row("engine memory with 50 tasks (PSS)", median(memory), "MB", 130.0),
        Row("event-loop stall with 50 tasks, p99", median(p99s), "ms", 20.0),
        Row("event-loop stall with 50 tasks, max", median(worst), "ms", 50.0),
    ]


async def _fifty() -> tuple[float, float, float, float, float]:
    """Rate, the baseline's rate, memory under load, stalls."""
    steps = _TASKS * _TASK_STEPS
    with home() as folder, model(_TASK_STEPS) as server:
        floor = steps / _floor(server.url, _TASKS)["wall_s"]
        async with engine(folder) as connection:
            started = time.perf_counter()
            working = asyncio.create_task(run_tasks(connection, server.url, _TASKS, workspace_in(folder)))
            await asyncio.sleep(1.0)
            memory = (await _status(connection)).memory_bytes
            await working
            rate = steps / (time.perf_counter() - started)
            status = await _status(connection)
    return rate, floor, memory / 1e6, status.loop_stall_p99_ms, status.loop_stall_max_ms
