"""Bounds under attack: how much memory the engine takes, and how long others wait, while something has no end."""

import asyncio
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

from app.client.connection import Connection
from app.protocol.tasks import TaskIdParams, TaskStartParams
from app.protocol.wire import TASK_GET, TASK_START
from tests.benchmarks.bench import Row, engine, home
from tests.benchmarks.strain import Strain, strain

_MOST_MB = 100.0
_MOST_MS = 50.0


async def floods() -> list[Row]:
    """Replies of 52 MB of text, 30 MB of arguments, 200,000 calls."""
    rows: list[Row] = []
    for kind in ("text", "arguments", "calls"):
        with home() as folder, _flood_server() as url:
            async with engine(folder) as client:
                await _run(client, "nothing", url)  # imports are not what is measured
                async with strain(client, folder) as found:
                    await _run(client, kind, url)
        rows += rows_of(f"a reply without an end: {kind}", found)
    return rows


def rows_of(name: str, found: Strain) -> list[Row]:
    return [
        Row(f"{name}, memory", found.memory_mb, "MB", _MOST_MB),
        Row(f"{name}, longest answer to others", found.answer_ms, "ms", _MOST_MS),
        Row(f"{name}, longest commit of others", found.commit_ms, "ms", _MOST_MS),
    ]


async def _run(client: Connection, kind: str, url: str) -> None:
    params = TaskStartParams(prompt="go", model=f"openai_compatible/{kind}", api_base=url, max_turns=2, mode="chat")
    task = (await client.call(TASK_START, params)).task
    while task.ended_at is None:
        await asyncio.sleep(0.05)
        task = (await client.call(TASK_GET, TaskIdParams(task_id=task.id))).task


@contextmanager
def _flood_server() -> Generator[str]:
    arguments = [sys.executable, "-m", "tests.benchmarks.flood_server"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
