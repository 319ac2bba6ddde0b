"""The time from the command to the first byte at the model: with a running engine, and without one."""

import asyncio
import os
import sys
import time
from pathlib import Path

from errand.client.launch import connect
from errand.system.paths import Paths
from tests.benchmarks.bench import ModelProcess, end_engine, home, median, model, workspace_in
from tests.benchmarks.row import Row

_ROUNDS = 7


async def start() -> list[Row]:
    warm: list[float] = []
    cold: list[float] = []
    floors: list[float] = []
    with home() as folder, model(0) as server:
        for _ in range(_ROUNDS):
            floors.append(await _until_first_request(server, _floor(server)))
            cold.append(await _until_first_request(server, _errand(server, folder)))
            warm.append(await _until_first_request(server, _errand(server, folder)))
            await end_engine(await connect(Paths(folder), "bench", start=False), folder)
            # Without an engine also means without a database.
            for file in folder.glob("errand.db*"):
                file.unlink()
    # The limits were 0.25 and 0.8 s on a machine where the bare loop took 0.19 s.
    floor = median(floors)
    return [
        Row("start to first model request, engine running", median(warm), "s", 1.3, floor, of_floor=True),
        Row("start to first model request, from nothing", median(cold), "s", 4.2, floor, of_floor=True),
    ]


def _floor(server: ModelProcess) -> list[str]:
    return [sys.executable, "-m", "tests.benchmarks.floor", server.url, "1"]


def _errand(server: ModelProcess, folder: Path) -> list[str]:
    model_options = [
        "--model",
        "openai_compatible/bench",
        "--api-base",
        server.url,
        "--workspace",
        str(workspace_in(folder)),
    ]
    return [str(Path(sys.executable).parent / "errand"), "run", "--approve", "all", *model_options, "go"]


async def _until_first_request(server: ModelProcess, command: list[str]) -> float:
    server.arm()
    started = time.time()
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, env=dict(os.environ)
    )
    assert await process.wait() == 0
    return server.first_request() - started
