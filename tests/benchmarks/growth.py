"""What a step costs as the conversation, its prompt and the number of clients grow.

CPU and bytes are the kernel's counts of the engine, so a busy machine changes them little.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_STATUS
from errand.protocol.events import EventRecord, TaskUpdate
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from errand.system.paths import Paths
from tests.benchmarks.bench import engine, home, median, model, workspace_in
from tests.benchmarks.row import Row

_ROUNDS = 3
_STEPS = 60
_WORD = "wombat "
_SHORT, _LONG = 1_000, 100_000
_CLIENTS = (1, 10, 50)
# Steps after which the CPU of the next ones is counted, in one conversation.
_EARLY, _LATE, _COUNTED = 40, 1_000, 100


@dataclass(frozen=True, slots=True)
class _Cost:
    """The cost of one step of the engine."""

    cpu_ms: float
    written_kb: float


async def growth() -> list[Row]:
    short, long, few, some, many = await _costs()
    return [
        Row("bytes written a step", median([cost.written_kb for cost in short]), "KB", 60),
        Row("bytes written a step after a prompt of 100 KB", median([cost.written_kb for cost in long]), "KB", 65),
        Row("engine CPU of a step, 100 KB of prompt over 1 KB", _more_ms(long, short), "ms", 0.2),
        Row("engine CPU of a step, 10 clients over 1", _more_ms(some, few), "ms", 1),
        Row("engine CPU of a step, 50 clients over 1", _more_ms(many, few), "ms", 4),
        Row("engine CPU of a step, step 1,000 over step 40", await _late_over_early(), "×", 1.15),
    ]


async def _costs() -> tuple[list[_Cost], ...]:
    """The rounds of each kind; the kinds take turns, so that each difference is of neighbours."""
    kinds = ((_SHORT, 1), (_LONG, 1), *((_SHORT, count) for count in _CLIENTS))
    rounds = [[await _steps(length, clients) for length, clients in kinds] for _ in range(_ROUNDS)]
    return tuple([list(of_kind) for of_kind in zip(*rounds, strict=True)])


async def _steps(prompt_length: int, clients: int) -> _Cost:
    async with _running_engine(_STEPS) as (_, pid, run), AsyncExitStack() as stack:
        for number in range(clients - 1):
            other = await connect(Paths(Path(os.environ["ERRAND_HOME"])), f"bench {number}")
            stack.push_async_callback(other.close)
            await other.subscribe_scope("all", "full")
        await run("go")
        cpu, written = _cpu_s(pid), _written(pid)
        await run(_WORD * (prompt_length // len(_WORD)))
        return _Cost((_cpu_s(pid) - cpu) / _STEPS * 1000, (_written(pid) - written) / _STEPS / 1000)


async def _late_over_early() -> float:
    marks = (_EARLY, _EARLY + _COUNTED, _LATE, _LATE + _COUNTED)
    async with _running_engine(marks[-1] + 1) as (connection, pid, run):
        at: dict[int, float] = {}

        def listen(event: object) -> None:
            if isinstance(event, EventRecord) and isinstance(event.event, TaskUpdate):
                at.setdefault(event.event.task.progress.step_count, _cpu_s(pid))

        unsubscribe = connection.subscribe(listen)
        await run("go")
        unsubscribe()
    early, early_end, late, late_end = (at[mark] for mark in marks)
    return (late_end - late) / (early_end - early)


@asynccontextmanager
async def _running_engine(
    steps: int,
) -> AsyncGenerator[tuple[Connection, int, Callable[[str], Awaitable[None]]], None]:
    """Also the engine's process, and what runs a task to its end, followed by this client."""
    with home() as folder, model(steps) as server:
        Paths(folder).settings.write_text(json.dumps({"command_sandbox": "off"}))
        async with engine(folder) as connection:
            await connection.subscribe_scope("all", "full")
            ended = asyncio.Event()

            def listen(event: object) -> None:
                task = (
                    event.event.task if isinstance(event, EventRecord) and isinstance(event.event, TaskUpdate) else None
                )
                if task is not None and task.outcome.ended_at is not None:
                    ended.set()

            async def run(prompt: str) -> None:
                ended.clear()
                await connection.call(
                    TASK_START,
                    TaskStartParams(
                        prompt=prompt,
                        model="openai_compatible/bench",
                        api_base=server.url,
                        api_key="none",
                        workspace=str(workspace_in(folder)),
                        approve="all",
                        attended=False,
                        max_turns=2 * steps,
                    ),
                )
                await ended.wait()

            unsubscribe = connection.subscribe(listen)
            status = await connection.call(ENGINE_STATUS, EmptyParams())
            yield connection, status.pid, run
            unsubscribe()


def _cpu_s(pid: int) -> float:
    """Return the CPU time of all threads, in steps of 10 ms; without the commands that it ran."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _written(pid: int) -> int:
    """Return the bytes handed to the kernel for files."""
    return next(
        int(line.split()[1])
        for line in Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
        if line.startswith("wchar:")
    )


def _more_ms(costs: Sequence[_Cost], base: Sequence[_Cost]) -> float:
    return median([cost.cpu_ms - under.cpu_ms for cost, under in zip(costs, base, strict=True)])
