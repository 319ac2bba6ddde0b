"""The cost of heavy work for the engine and its other clients: memory, response times, commits."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from errand.client.connection import Connection
from errand.protocol.agents import PERSONALITY_SAVE, Personality, PersonalitySaveParams
from errand.protocol.base import JsonObject
from errand.protocol.tasks.methods import TASK_LIST, TaskListParams
from tests.benchmarks.process_memory import PeakMemory

_EACH_S = 0.01
_REST_S = 2.0


@dataclass(slots=True)
class Strain:
    """Growth of the engine's peak memory in MB.

    Also the longest response and the longest commit in ms, and the total time.
    """

    memory_mb: float = 0.0
    answer_ms: float = 0.0
    commit_ms: float = 0.0
    seconds: float = 0.0


@asynccontextmanager
async def strain(client: Connection, home: Path) -> AsyncGenerator[Strain]:
    """Measure the engine of `home` while the block runs, with another client that reads and writes continuously."""
    measured = Strain()
    pid = engine_pid(home)
    peak, begun = PeakMemory(pid), time.perf_counter()
    personality = Personality(id="pers_strain", name="Strain", system_prompt="")

    async def read() -> None:
        await client.call(TASK_LIST, TaskListParams(limit=1))

    async def write() -> None:
        await client.call(PERSONALITY_SAVE, PersonalitySaveParams(personality=personality))

    async def watch(work: Callable[[], Awaitable[None]], note: Callable[[float], None]) -> None:
        while True:
            started = time.perf_counter()
            await work()
            note((time.perf_counter() - started) * 1000)
            await asyncio.sleep(_EACH_S)

    def answered(ms: float) -> None:
        measured.answer_ms = max(measured.answer_ms, ms)

    def committed(ms: float) -> None:
        measured.commit_ms = max(measured.commit_ms, ms)

    async with asyncio.TaskGroup() as group:
        watchers = [group.create_task(watch(read, answered)), group.create_task(watch(write, committed))]
        try:
            yield measured
        finally:
            measured.seconds = time.perf_counter() - begun
            measured.memory_mb = peak.growth_mb()
            for watcher in watchers:
                watcher.cancel()


async def at_rest(client: Connection, home: Path) -> Strain:
    """The same for an idle engine: the cost of the machine and its other programs."""
    async with strain(client, home) as measured:
        await asyncio.sleep(_REST_S)
    return measured


def engine_pid(home: Path) -> int:
    endpoint = msgspec.json.decode((home / "run" / "engine.json").read_bytes(), type=JsonObject)
    pid = endpoint["pid"]
    assert isinstance(pid, int)
    return pid
