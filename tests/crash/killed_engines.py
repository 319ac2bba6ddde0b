"""A data directory whose engine is killed repeatedly while a person starts, resumes and answers."""

import asyncio
import os
import random
import signal
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from errand.client.connection import Connection
from errand.client.errors import CallError, ConnectionLost
from errand.client.launch import read_endpoint
from errand.protocol.asks import ASK_ANSWER, ASK_LIST, RUN_AGAIN, SKIP, STOP, Ask, AskAnswerParams, AskListParams
from errand.protocol.tasks.methods import (
    TASK_LIST,
    TASK_RESUME,
    TASK_START,
    TASK_TRY_NOW,
    TaskIdParams,
    TaskListParams,
    TaskStartParams,
)
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from tests.crash.work import KINDS, prompt
from tests.support.command_line import Errand
from tests.support.forked_process import start_program
from tests.support.postgres_server import PostgresServer
from tests.support.stored_records import PostgresRecords, StoredRecords
from tests.support.warm_errand import CHECKOUT, Command

AT_ONCE = 5
_PAUSE_S = 0.02
_LIFE_LIMIT_S = 60.0
_NOT_WAITED_FOR = 0.2
# The longest time until the server of the database is killed, and the longest until it is started again.
_MAX_SERVER_LIFE_S, _MAX_SERVER_OUTAGE_S = 1.5, 1.5


@dataclass(slots=True)
class KilledEngines:
    """`started` are the acknowledged tasks, `waits` the rate limits that applied.

    `kills` counts the killed engines, `servers` the killed servers of the database.
    """

    folder: Path
    home: Path
    stored: StoredRecords
    model_url: str
    chance: random.Random
    started: list[str] = field(default_factory=list[str])
    kills: int = 0
    in_start: int = 0
    servers: int = 0
    waits: set[str] = field(default_factory=set[str])
    _count: int = 0
    _nodes: dict[str, str] = field(default_factory=dict[str, str])

    def file_of(self, task_id: str) -> Path:
        return self.folder / f"{task_id}.txt"

    @property
    def server(self) -> PostgresServer | None:
        """The server of the database, if it has one."""
        return self.stored.server if isinstance(self.stored, PostgresRecords) else None

    async def run_engine(self, *crash_point: str, kill_after_s: float | None = None, server_dies: bool = False) -> None:
        """One engine, from its start to its death; if it is not killed, until all tasks have ended.

        With `server_dies`, the time to its death begins when the server of the database is back.
        """
        environment = Errand(self.home, self.folder).environment
        command = Command(("engine",), str(CHECKOUT), environment)
        if crash_point:
            command = replace(command, module="tests.crash.killed_at_commit", arguments=crash_point)
        error_file = self.folder / "engine.err"
        with error_file.open("wb") as errors:
            process = await start_program(command, (DEVNULL, PIPE, errors.fileno()))
        assert process.stdout is not None
        if await process.stdout.readline():
            ends = not crash_point and kill_after_s is None
            await self._work_until_death(process, kill_after_s, ends=ends, server_dies=server_dies)
        else:
            self.in_start += 1
        last = signal.SIGKILL if crash_point or kill_after_s is not None else signal.SIGTERM
        # Not `process.kill`: for a dead process it consumes the exit code that `wait` needs.
        with suppress(ProcessLookupError):
            os.kill(process.pid, last)
        code = await process.wait()
        self.kills += code == -9
        assert code in (0, -9), f"the engine ended with {code}: {error_file.read_text()}"
        self._look_at_what_is_left()

    async def _work_until_death(
        self, process: asyncio.subprocess.Process, kill_after_s: float | None, *, ends: bool, server_dies: bool
    ) -> None:
        death = asyncio.create_task(process.wait())
        person = asyncio.create_task(self._person(ends, may_be_refused=server_dies))
        if server_dies:
            await self._restart_server()
        limit = _LIFE_LIMIT_S if kill_after_s is None else kill_after_s
        done, _ = await asyncio.wait({death, person}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        assert done or kill_after_s is not None, "neither did the engine die nor did its tasks end"
        person.cancel()
        death.cancel()
        results = await asyncio.gather(person, death, return_exceptions=True)
        if isinstance(results[0], Exception) and not isinstance(results[0], ConnectionLost | OSError):
            raise results[0]

    async def _restart_server(self) -> None:
        assert self.server is not None
        await asyncio.sleep(self.chance.uniform(0, _MAX_SERVER_LIFE_S))
        await asyncio.to_thread(self.server.kill)
        await asyncio.sleep(self.chance.uniform(0, _MAX_SERVER_OUTAGE_S))
        await asyncio.to_thread(self.server.start)
        self.servers += 1

    async def _person(self, ends: bool, *, may_be_refused: bool) -> None:
        """Keep tasks running and answer their asks; with `ends` start none, and return when all have ended."""
        connection = Connection(lambda: read_endpoint(Paths(self.home)), "the person")
        await connection.open()
        try:
            while True:
                try:
                    is_over = await self._look_round(connection, ends)
                except CallError as error:
                    if not (may_be_refused and "does not answer" in str(error)):
                        raise
                else:
                    if is_over:
                        return
                await asyncio.sleep(_PAUSE_S)
        finally:
            await connection.close()

    async def _look_round(self, connection: Connection, ends: bool) -> bool:
        """True if nothing is left to do."""
        tasks = (await connection.call(TASK_LIST, TaskListParams(active=True))).tasks
        for task in tasks:
            await self._look_after(connection, task)
        for ask in (await connection.call(ASK_LIST, AskListParams())).asks:
            await self._settle(connection, ask)
        if not ends and len(tasks) < AT_ONCE:
            await self._start(connection)
        return ends and not tasks

    async def _look_after(self, connection: Connection, task: Task) -> None:
        """Resume interrupted tasks. Those waiting for a rate limit continue by themselves; some are retried early."""
        method = TASK_RESUME
        if task.activity.retry_at is not None:
            if self.chance.random() > _NOT_WAITED_FOR:
                return
            method = TASK_TRY_NOW
            self.waits.add(f"{task.id} {task.progress.step_count}")
        elif task.activity.status != "interrupted":
            return
        with suppress(CallError):  # it has continued or ended meanwhile
            await connection.call(method, TaskIdParams(task_id=task.id))

    async def _start(self, connection: Connection) -> None:
        kind = KINDS[self._count % len(KINDS)]
        self._count += 1
        task_id = f"crash_{self._count}"
        params = TaskStartParams(
            task_id=task_id,
            prompt=prompt(kind, str(self.file_of(task_id))),
            model="openai_compatible/test-model",
            api_base=self.model_url,
            workspace=str(self.folder),
            approve="ask" if kind == "approved" else "all",
        )
        await connection.call(TASK_START, params)
        self.started.append(task_id)

    async def _settle(self, connection: Connection, ask: Ask) -> None:
        if ask.kind == "unknown":
            text = self.chance.choices((RUN_AGAIN, SKIP, STOP), (10, 10, 1))[0]
            params = AskAnswerParams(ask_id=ask.id, text=text)
        elif ask.kind == "question":
            params = AskAnswerParams(ask_id=ask.id, text="Yes")
        else:
            params = AskAnswerParams(ask_id=ask.id, allow=True)
        await connection.call(ASK_ANSWER, params)

    def _look_at_what_is_left(self) -> None:
        """Check a dead engine's database: it is intact, and every finished node of all earlier engines is unchanged."""
        if not self.stored.is_made:
            return
        self.stored.check()
        nodes = {row[0]: row[1] for row in self.stored.rows("SELECT id, body FROM nodes WHERE status <> 'streaming'")}
        assert self._nodes.items() <= nodes.items(), "a committed node is lost or was changed"
        self._nodes = nodes
