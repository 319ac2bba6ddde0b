"""Measures storage: commits of the journal, and reads among 100,000 conversations and nodes.

`python -m tests.benchmarks.bench_storage`; `measure` returns milliseconds by name.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from errand.engine.storage.database import Database
from errand.engine.storage.event_writes import event_writes
from errand.engine.storage.records import conversations, executions, nodes, tasks, turns
from errand.engine.storage.sql.statements import Write
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.protocol.events import EventRecord, TaskUpdate
from errand.protocol.usage import Usage
from tests.benchmarks.history import fill
from tests.support.records import conversation, node, task

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def timed(work: Callable[[], Awaitable[object]], rounds: int) -> tuple[float, float, float]:
    """Median and 99th percentile of the wall time of one round, and its mean CPU time, in milliseconds."""
    walls: list[float] = []
    cpu = time.process_time()
    for _ in range(rounds):
        start = time.perf_counter()
        await work()
        walls.append((time.perf_counter() - start) * 1000)
    cpu = (time.process_time() - cpu) * 1000 / rounds
    walls.sort()
    return walls[rounds // 2], walls[int(rounds * 0.99)], cpu


class Numbers:
    """Consecutive numbers for ids and sequences."""

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        self.last += 1
        return self.last


def step(numbers: Numbers) -> tuple[Write, ...]:
    """The six writes of about one step of a task: an event with its task, a turn, a tool call, a node."""
    number = numbers.next()
    event = TaskUpdate(task=task("t1", step_count=number))
    started = executions.ExecutionStart(
        execution_id=f"x{number}",
        task_id="t1",
        turn=number,
        node_id="n",
        call_id="c",
        tool="shell",
        arguments={"command": "echo hello"},
        at=_NOW,
    )
    return (
        *event_writes(EventRecord(sequence=number, epoch="e", event=event)),
        turns.started("c1", "t1", number, "m", _NOW),
        turns.finished("t1", number, "complete", Usage(input_tokens=10), _NOW),
        executions.started(started),
        nodes.save(node(f"s{number}", text=f"step {number} of the job printed hello and went well " * 4)),
    )


async def bench_journal(folder: Path) -> dict[str, float]:
    database = await Database.open(sqlite_url(folder / "journal.db"), folder)
    journal = database.journal
    journal.put(conversations.save(conversation("c1")))
    journal.put(*tasks.add(task("t1")))
    numbers = Numbers()

    async def one() -> None:
        journal.put(tasks.save(task("t1", step_count=numbers.next())))
        await journal.flush()

    async def six() -> None:
        journal.put(*step(numbers))
        await journal.flush()

    async def fifty() -> None:
        await asyncio.gather(*(six() for _ in range(50)))

    await one()
    timings: dict[str, float] = {}
    for name, work, rounds in (("1 write", one, 500), ("6 writes", six, 500), ("50 × 6 writes", fifty, 40)):
        median, worst, cpu = await timed(work, rounds)
        timings |= {f"{name}: median": median, f"{name}: p99": worst, f"{name}: CPU": cpu}
    await database.close()
    return timings


async def bench_reads(folder: Path, count: int = 100_000) -> dict[str, float]:
    database = await Database.open(sqlite_url(folder / "reads.db"), folder)
    start = time.perf_counter()
    await fill(database, count)
    timings = {"fill, per node": (time.perf_counter() - start) * 1000 / count}
    await database.close()

    start = time.perf_counter()
    database = await Database.open(sqlite_url(folder / "reads.db"), folder)
    timings["open"] = (time.perf_counter() - start) * 1000
    list_page = (await database.conversations.page()).next_cursor
    reads: dict[str, Callable[[], Awaitable[object]]] = {
        "list, first page": lambda: database.conversations.page(),
        "list, next page": lambda: database.conversations.page(50, list_page),
    }
    for text in (
        "the",
        "the tool error",
        "the*",
        "ther",
        "erro",
        '"the tool"',
        '"the tool error file test there"',
        "abc",
    ):
        reads[f"search {text}"] = lambda text=text: database.search.find(text)
    reads["search in one conversation"] = lambda: database.search.find("the", 20, "conv_00000007")
    for name, read in reads.items():
        median, worst, _ = await timed(read, 20)
        timings |= {f"{name}: median": median, f"{name}: max": worst}
    await database.close()
    return timings


def measure() -> dict[str, float]:
    """All measurements, in about 40 seconds."""

    async def both(folder: Path) -> dict[str, float]:
        return await bench_journal(folder) | await bench_reads(folder)

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(both(Path(folder)))


if __name__ == "__main__":
    for name, value in measure().items():
        sys.stdout.write(f"{name:55} {value:8.2f} ms\n")
