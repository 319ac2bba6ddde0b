"""The command line as a user runs it: real processes on a temporary data directory.

Most of them are forks of a process that has the imports (`warm_errand.py`).
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

import errand
from errand.client.connection import Connection
from errand.client.errors import NoEngine
from errand.client.launch import read_endpoint
from errand.protocol.base import JsonObject
from errand.protocol.tasks.groups import TaskStatus
from errand.protocol.tasks.methods import TASK_GET, TASK_LIST, TaskIdParams, TaskListParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from tests.support.forked_process import start_program
from tests.support.limits import WAIT_LIMIT_S
from tests.support.processes import is_alive, until
from tests.support.warm_errand import CHECKOUT, Command


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[JsonObject]:
        """Standard output, parsed as one JSON object per line."""
        return [msgspec.json.decode(line, type=JsonObject) for line in self.out.splitlines()]


class Errand:
    """`errand` on the data directory `home`, started in `folder`, without keys and colours in its environment.

    `prefix` precedes each command: another program that runs it.
    """

    def __init__(self, home: Path, folder: Path, prefix: tuple[str, ...] = ()) -> None:
        self.home = home
        self.folder = folder
        self._prefix = prefix
        inherited = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_COLOR"))}
        self.environment = inherited | {
            "ERRAND_HOME": str(home),
            "PYTHONPATH": os.pathsep.join((str(Path(errand.__file__).parents[1]), str(CHECKOUT))),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "COLUMNS": "100",
        }
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
            self.environment.pop(name, None)

    async def run(self, *arguments: str, typed: str = "", variables: Mapping[str, str] = {}) -> Finished:
        """Run a command until it exits."""
        process = await self.start(*arguments, variables=variables)
        async with asyncio.timeout(WAIT_LIMIT_S):
            out, err = await process.communicate(typed.encode())
        assert process.returncode is not None
        return Finished(process.returncode, out.decode(), err.decode())

    async def start(
        self, *arguments: str, out: int = PIPE, variables: Mapping[str, str] = {}
    ) -> asyncio.subprocess.Process:
        """Start a command with pipes for all three streams; `out` may be a descriptor to write to."""
        command = Command(arguments, str(self.folder), self.environment | dict(variables))
        return await start_program(command, (PIPE, out, PIPE), self._prefix)

    async def close(self) -> None:
        """End the engine, if one runs, as the system does at shutdown."""
        if (self.home / "run" / "engine.json").exists():
            pid = self.engine_pid()
            with suppress(ProcessLookupError):  # a killed engine leaves its file
                os.kill(pid, signal.SIGTERM)
            await until(lambda: not is_alive(pid))

    async def task(self, status: TaskStatus) -> Task:
        """The newest task, once it has this status; queries the running engine without starting a command."""
        paths = Paths(self.home)
        connection = Connection(lambda: read_endpoint(paths), "test")
        await connection.open()
        try:
            async with asyncio.timeout(WAIT_LIMIT_S):
                while True:
                    task = (await connection.call(TASK_LIST, TaskListParams(limit=1))).tasks[0]
                    if task.activity.status == status:
                        return task
                    await asyncio.sleep(0.02)  # a client that asks without a pause is refused
        finally:
            await connection.close()

    def engine_pid(self) -> int:
        """The process id of the running engine."""
        endpoint = msgspec.json.decode((self.home / "run" / "engine.json").read_bytes(), type=JsonObject)
        pid = endpoint["pid"]
        assert isinstance(pid, int)
        return pid

    def kill_engine(self) -> None:
        os.kill(self.engine_pid(), signal.SIGKILL)


async def rest(process: asyncio.subprocess.Process) -> Finished:
    """Wait until a started command exits."""
    async with asyncio.timeout(WAIT_LIMIT_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Finished(process.returncode, (out or b"").decode(), err.decode())


@asynccontextmanager
async def connected(errand: Errand) -> AsyncGenerator[Connection]:
    connection = Connection(lambda: read_endpoint(Paths(errand.home)), "test")
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


async def ended(client: Connection, task: Task) -> Task:
    async with asyncio.timeout(WAIT_LIMIT_S):
        while task.outcome.ended_at is None:
            await asyncio.sleep(0.02)  # a client that asks without a pause is refused
            task = (await client.call(TASK_GET, TaskIdParams(task_id=task.id))).task
    return task


async def statuses(errand: Errand, expected: list[str]) -> None:
    """Wait until the tasks' statuses are these, in alphabetical order."""
    async with asyncio.timeout(WAIT_LIMIT_S):
        while True:
            listing = await errand.run("tasks", "--json")
            if sorted(str(task["status"]) for task in listing.lines) == expected:
                return


@contextmanager
def engine_home(folder: Path) -> Generator[Paths]:
    paths = Paths(folder)
    yield paths
    try:
        engine = psutil.Process(read_endpoint(paths).pid)
    except (NoEngine, psutil.NoSuchProcess):
        return
    engine.kill()
    engine.wait(10)
