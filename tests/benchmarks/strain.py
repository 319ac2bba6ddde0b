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
from errand.protocol.tasks import TASK_LIST, TaskListParams

_EACH_S = 0.01
_REST_S = 2.0
_MEGABYTE = 1024


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
    found = Strain()
    pid = engine_pid(home)
    before, begun = _begin_peak(pid), time.perf_counter()
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
        found.answer_ms = max(found.answer_ms, ms)

    def committed(ms: float) -> None:
        found.commit_ms = max(found.commit_ms, ms)

    async with asyncio.TaskGroup() as group:
        watchers = [group.create_task(watch(read, answered)), group.create_task(watch(write, committed))]
        try:
            yield found
        finally:
            found.seconds = time.perf_counter() - begun
            found.memory_mb = (_status(pid, "VmHWM") - before) / _MEGABYTE
            for watcher in watchers:
                watcher.cancel()


async def at_rest(client: Connection, home: Path) -> Strain:
    """The same for an idle engine: the cost of the machine and its other programs."""
    async with strain(client, home) as found:
        await asyncio.sleep(_REST_S)
    return found


def engine_pid(home: Path) -> int:
    endpoint = msgspec.json.decode((home / "run" / "engine.json").read_bytes(), type=JsonObject)
    pid = endpoint["pid"]
    assert isinstance(pid, int)
    return pid


def _begin_peak(pid: int) -> int:
    """Reset the system's peak counter; returns the memory used now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return _status(pid, "VmRSS")


def _status(pid: int, field: str) -> int:
    """A value of the process's status in KB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
