"""The parts that rows share: a model server and an engine, each in a process; medians."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from errand.client.connection import Connection
from errand.client.errors import ConnectionLost
from errand.client.launch import connect
from errand.client.subscription import Detail
from errand.protocol.base import JsonValue
from errand.protocol.engine import ENGINE_SHUTDOWN, EngineShutdownParams
from errand.protocol.events import EventRecord, TaskUpdate
from errand.protocol.tasks.methods import TASK_START, TaskStartParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths

P = ParamSpec("P")
T = TypeVar("T")


class ModelProcess:
    """The benchmark's model as a process; `first_request` returns when the next request reached it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.url = self._line()

    def arm(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def first_request(self) -> float:
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def model(
    steps: int, command: str = "", calls: Sequence[tuple[str, Mapping[str, JsonValue]]] = (), tokens: int = 0
) -> Generator[ModelProcess]:
    """Replies with the calls, or with as many commands as there are `steps`, after as many `tokens` of text.

    The commands differ: a task that makes the same call again and again is ended.
    """
    commands = [("shell", {"command": command or f"echo step {number}"}) for number in range(steps)]
    encoded_calls = msgspec.json.encode(calls or commands).decode()
    arguments = [sys.executable, "-m", "tests.benchmarks.model", encoded_calls, str(tokens)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield ModelProcess(process)
        finally:
            process.terminate()


@contextmanager
def home() -> Generator[Path]:
    """A new data directory, also set in the environment, so that commands find it."""
    before = os.environ.get("ERRAND_HOME")
    with tempfile.TemporaryDirectory(prefix="errand-bench-") as folder:
        os.environ["ERRAND_HOME"] = folder
        try:
            yield Path(folder)
        finally:
            os.environ.pop("ERRAND_HOME")
            if before is not None:
                os.environ["ERRAND_HOME"] = before


def workspace_in(folder: Path) -> Path:
    """A workspace in the data directory, like those that the engine makes; the directory itself is closed to tools."""
    workspace = folder / "workspaces" / "bench"
    workspace.mkdir(parents=True, exist_ok=True)
    return workspace


@asynccontextmanager
async def engine(folder: Path) -> AsyncGenerator[Connection, None]:
    connection = await connect(Paths(folder), "bench")
    try:
        yield connection
    finally:
        await end_engine(connection, folder)


async def end_engine(connection: Connection, folder: Path) -> None:
    """Shut the engine down and wait for its end."""
    with suppress(ConnectionLost):  # the engine may be gone before its answer is read
        await connection.call(ENGINE_SHUTDOWN, EngineShutdownParams())
    await connection.close()
    async with asyncio.timeout(10):
        while Paths(folder).endpoint.exists():  # noqa: ASYNC110 - another process sets no event of ours
            await asyncio.sleep(0.01)


async def run_tasks(connection: Connection, url: str, count: int, workspace: Path, detail: Detail = "summary") -> None:
    """Start `count` tasks and wait until all have ended, while this client follows them."""
    left = count
    done = asyncio.Event()

    def listen(event: object) -> None:
        nonlocal left
        if isinstance(event, EventRecord) and isinstance(event.event, TaskUpdate) and event.event.task.outcome.ended_at:
            assert event.event.task.activity.status == "completed", event.event.task
            left -= 1
            if left == 0:
                done.set()

    unsubscribe = connection.subscribe(listen)
    await connection.subscribe_scope("all", detail)
    await asyncio.gather(*(start(connection, url, workspace) for _ in range(count)))
    await done.wait()
    unsubscribe()


async def start(connection: Connection, url: str, workspace: Path) -> Task:
    """Start one task with all approvals in `workspace`."""
    started = await connection.call(
        TASK_START,
        TaskStartParams(
            prompt="go",
            model="openai_compatible/bench",
            api_base=url,
            api_key="none",
            workspace=str(workspace),
            approve="all",
            attended=False,
            max_turns=1000,
        ),
    )
    return started.task


async def in_new_process(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Prepare something in a process that ends then, so that its memory is not counted as that of what is measured."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return await asyncio.wrap_future(pool.submit(work, *args, **kwargs))


def p99(samples: Sequence[float]) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def median(samples: Sequence[float]) -> float:
    return statistics.median(samples)
