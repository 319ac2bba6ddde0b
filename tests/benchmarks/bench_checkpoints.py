"""The cost of checkpoints: a step that changes files of a large workspace, and a write with and without one.

As in a task, the result of each write is committed after it.
"""

import asyncio
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from errand.engine.checkpoints.baselines import Baselines
from errand.engine.checkpoints.contents import ContentStore
from errand.engine.checkpoints.recorder import TaskCheckpoints
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.engine.storage.records import conversations, tasks
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.engine.tools.base import Tool
from errand.engine.tools.checkpoints import Checkpoints
from errand.protocol.events import TaskMessage
from errand.protocol.tasks.task import replace_fields
from tests.benchmarks.row import Row
from tests.support.loop_parts import make_tool_context, run, tool_of
from tests.support.records import conversation, node, task

_FOLDERS, _FILES = 1_000, 50
_ROUNDS = 20
_CHANGED = 3
_TEXT = "".join(f"line {number} of a source file of usual length\n" for number in range(200))


async def checkpoints() -> list[Row]:
    """Times are CPU of the whole process, except where named: the disk of the day decides the rest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workspace = folder / "workspace"
        async with _opened(folder) as (log, store):
            code, bare = _Writes(_tool(folder, store), log), _Writes(_tool(folder, None), log)
            _fill(workspace)
            steps: list[tuple[float, float]] = []
            with_it: list[tuple[float, float]] = []
            without: list[tuple[float, float]] = []
            for number in range(_ROUNDS):
                with_it.append(await code.write(number, "with.py"))
                without.append(await bare.write(number, "without.py"))
            for number in range(_ROUNDS):
                taken = [await code.write(1_000 + number, f"d{number}/f{each}.py") for each in range(_CHANGED)]
                steps.append((sum(cpu for cpu, _ in taken), sum(wall for _, wall in taken)))
            looked = [await _kept(store, "true build && true commit -m 'One thing'", workspace) for _ in range(_ROUNDS)]
            names = [f"d{at}/f[012].py" for at in range(20, 20 + _ROUNDS)]
            named = [await _kept(store, f"sed -i s/line.7.of/row.7.of/ {pattern}", workspace) for pattern in names]
            await log.flush()
    cost = [checkpointed[0] - other[0] for checkpointed, other in zip(with_it, without, strict=True)]
    walls = [checkpointed[1] - other[1] for checkpointed, other in zip(with_it, without, strict=True)]
    return [
        Row("a step that changes 3 of 50,000 files, with its checkpoint", median(wall for _, wall in steps), "ms", 15),
        Row("a step that changes 3 of 50,000 files, CPU", median(cpu for cpu, _ in steps), "ms", 15),
        Row("a write with a checkpoint over one without, CPU", median(cost), "ms", 1),
        Row("a write with a checkpoint over one without, as waited for", median(walls), "ms", 5),
        Row("a command that names no file: to look for files, CPU", median(looked), "ms", 0.5),
        Row("a command that changes 3 files it names: to keep and compare them, CPU", median(named), "ms", 3),
    ]


@asynccontextmanager
async def _opened(folder: Path) -> AsyncGenerator[tuple[EventLog, Checkpoints]]:
    database = await Database.open(sqlite_url(folder / "errand.db"), folder / "copies")
    working = replace_fields(task(), workspace=str(folder / "workspace"))
    contents = ContentStore(folder / "replaced")
    baselines = Baselines(contents, folder / "git", folder / "private")
    log = EventLog(database.journal, database.epoch, 0)
    try:
        database.journal.put(conversations.save(conversation()), *tasks.add(task()))
        await database.journal.flush()
        yield log, TaskCheckpoints(lambda: working, log, baselines)
    finally:
        await baselines.close()
        contents.close()
        log.deltas.close()
        await database.close()


def _tool(folder: Path, store: Checkpoints | None) -> Tool:
    return tool_of(replace(make_tool_context(folder), checkpoints=store), "code")


def _fill(workspace: Path) -> None:
    for number in range(_FOLDERS):
        (workspace / f"d{number}").mkdir()
        for each in range(_FILES):
            (workspace / f"d{number}/f{each}.py").write_text(_TEXT if each < _CHANGED else "x = 1\n")


@dataclass(slots=True)
class _Writes:
    tool: Tool
    log: EventLog

    async def write(self, number: int, path: str) -> tuple[float, float]:
        """CPU and waiting time in milliseconds of one write and the commit of its result."""
        cpu, wall = time.process_time(), time.perf_counter()
        await run(self.tool, {"action": "write", "path": path, "content": f"{_TEXT}# {number}\n"})
        self.log.publish(TaskMessage(node=node(f"n{path}{number}")))
        await self.log.flush()
        return 1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - wall)


async def _kept(checkpoints: Checkpoints, line: str, workspace: Path) -> float:
    """CPU in milliseconds of keeping what a command names and of recording what it changed."""
    await checkpoints.prepare()
    cpu = time.process_time()
    snapshot = await checkpoints.command_begins("call", line, workspace)
    cpu = time.process_time() - cpu
    await asyncio.to_thread(subprocess.run, ["bash", "-c", line], cwd=workspace, check=True)
    again = time.process_time()
    if snapshot is not None:
        snapshot.record_changes()
    return 1000 * (cpu + time.process_time() - again)
