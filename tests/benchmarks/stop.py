"""From a stop to the end of all processes of a task, including some that left their session and their parent."""

import asyncio
import time
from pathlib import Path

import psutil

from app.client.connection import Connection
from app.protocol.tasks import TASK_STOP, TaskIdParams
from tests.benchmarks.bench import Row, engine, home, model, p99, start, workspace_in

_ROUNDS = 50
_PROCESSES = 5
_LEAVES = "(setsid sh -c 'echo $$ >> pids; exec sleep 60' &)"
_COMMAND = f"rm -f pids; {_LEAVES}; {_LEAVES}; {_LEAVES}; sleep 60 & echo $! >> pids; echo $$ >> pids; wait"


async def stop() -> list[Row]:
    gone: list[float] = []
    with home() as folder, model(1, _COMMAND) as server:
        workspace = workspace_in(folder)
        async with engine(folder) as connection:
            for _ in range(_ROUNDS):
                gone.append(await _once(connection, server.url, workspace))
    return [Row("stop until every process is gone, p99", p99(gone), "s", 0.3)]


async def _once(connection: Connection, url: str, workspace: Path) -> float:
    file = workspace / "pids"
    file.unlink(missing_ok=True)
    task = await start(connection, url, workspace)
    while not file.exists() or len(file.read_text().split()) < _PROCESSES:  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(0.002)
    pids = [int(pid) for pid in file.read_text().split()]
    started = time.perf_counter()
    await connection.call(TASK_STOP, TaskIdParams(task_id=task.id))
    while any(psutil.pid_exists(pid) for pid in pids):  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(0.001)
    return time.perf_counter() - started
