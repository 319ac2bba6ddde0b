"""Twenty concurrent tasks on a real engine for a long time; people answer and stop, clients connect and disconnect."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil

from errand.client.connection import Connection
from errand.client.errors import CallError, ConnectionLost, LaunchError, NoEngine
from errand.client.launch import connect, read_endpoint
from errand.engine.core.settings import Settings
from errand.protocol.asks import ASK_ANSWER, ASK_LIST, Ask, AskAnswerParams, AskListParams
from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_STATUS
from errand.protocol.events import AskUpdate, EventRecord, TaskUpdate
from errand.protocol.tasks.methods import (
    TASK_LIST,
    TASK_RESUME,
    TASK_START,
    TASK_STOP,
    TaskIdParams,
    TaskListParams,
    TaskStartParams,
)
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from tests.benchmarks.bench import end_engine
from tests.clients.restless import Gone, RestlessClient
from tests.soak.sample import Meter, Sample
from tests.soak.work import LONG, PLANS, answer, prompt
from tests.support.model_server import ModelServer
from tests.support.stored_records import StoredRecords

_AT_A_TIME = 20
_CLIENTS = 8
_SAMPLED_EACH_S = 5.0
_LOST = (CallError, ConnectionLost, NoEngine, LaunchError)


class Soak:
    """`run` fills `samples`; `ended` counts tasks by their end. `lives` is the number of engine starts."""

    def __init__(self, home: Path, records: StoredRecords, seconds: float, lives: int) -> None:
        self.samples: list[Sample] = []
        self.ended: dict[str, int] = {}
        self._paths = Paths(home)
        self._records = records
        self._meter = Meter(records)
        self._workspace = home / "workspaces" / "soak"
        self._seconds = seconds
        self._lives = lives
        self._began = time.monotonic()
        self._random = Random(1)
        self._number = 0
        self._news = asyncio.Condition()
        self._over: set[str] = set()
        self._group = asyncio.TaskGroup()
        self._connection: Connection | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    async def run(self) -> None:
        Settings(self._paths.settings).set("database_url", self._records.url)
        self._workspace.mkdir(parents=True)
        (self._workspace / "shared.txt").write_text("hay\nneedle\n" * 200)
        async with ModelServer(answer=answer) as model:
            await self._open()
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._seconds), self._group:
                        for _ in range(_AT_A_TIME):
                            self._group.create_task(self._work(model.url))
                        for number in range(_CLIENTS):
                            self._group.create_task(self._come_and_go(f"client-{number}"))
                        self._group.create_task(self._sample())
                        self._group.create_task(self._restart())
            finally:
                self._unsubscribe()
                await self._line.close()
                await end_engine(await connect(self._paths, "soak"), self._paths.home)

    @property
    def _line(self) -> Connection:
        assert self._connection is not None
        return self._connection

    async def _open(self) -> None:
        self._connection = await connect(self._paths, "soak")
        self._unsubscribe = self._connection.subscribe(self._on_message)
        await self._connection.subscribe_scope("all", "summary")

    def _on_message(self, message: object) -> None:
        match message:
            case EventRecord(event=TaskUpdate(task=task)) if task.outcome.ended_at is not None:
                self._note(task)
            case EventRecord(event=AskUpdate(ask=ask)) if ask.status == "waiting":
                self._group.create_task(self._answer(ask))
            case _:
                pass

    def _note(self, task: Task) -> None:
        if task.id not in self._over:
            self._over.add(task.id)
            self.ended[task.activity.status] = self.ended.get(task.activity.status, 0) + 1
            self._group.create_task(self._tell())

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _answer(self, ask: Ask) -> None:
        with suppress(*_LOST):
            await self._line.call(ASK_ANSWER, AskAnswerParams(ask_id=ask.id, text="this", allow=True))

    async def _work(self, url: str) -> None:
        while True:
            self._number += 1
            await self._one_task(self._number, url)

    async def _one_task(self, number: int, url: str) -> None:
        """Run one task to its end; some are stopped midway."""
        task_id = f"soak_{number}"
        params = TaskStartParams(
            prompt=prompt(number),
            task_id=task_id,
            model="openai_compatible/test-model",
            api_base=url,
            api_key="none",
            workspace=str(self._workspace),
            approve="ask" if number % 2 else "all",
        )
        while not await self._try(lambda: self._line.call(TASK_START, params)):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.2)
        if number % PLANS == LONG:
            await asyncio.sleep(self._random.uniform(0.1, 3))
            await self._try(lambda: self._line.call(TASK_STOP, TaskIdParams(task_id=task_id)))
        async with self._news:
            await self._news.wait_for(lambda: task_id in self._over)
        # A workspace that grows would make each search of it longer.
        for note in (self._workspace / "notes").glob(f"{number}-*"):
            note.unlink(missing_ok=True)

    async def _resume(self, task_id: str) -> None:
        await self._try(lambda: self._line.call(TASK_RESUME, TaskIdParams(task_id=task_id)))

    async def _try(self, call: Callable[[], Awaitable[object]]) -> bool:
        try:
            await call()
        except _LOST:
            return False
        return True

    async def _come_and_go(self, name: str) -> None:
        while True:
            with suppress(Gone, OSError, NoEngine):
                client = RestlessClient(name, read_endpoint(self._paths))
                await client.connect()
                await client.follow(detail=self._random.choice(("summary", "full")))
                await asyncio.sleep(self._random.uniform(0.5, 5))
                client.stop_reading()
                await asyncio.sleep(self._random.uniform(0, 2))
                await client.die(in_mid_frame=self._random.random() < 0.5)
            await asyncio.sleep(self._random.uniform(0.1, 1))

    async def _sample(self) -> None:
        while True:
            with suppress(*_LOST, OSError, psutil.NoSuchProcess):
                status = await self._line.call(ENGINE_STATUS, EmptyParams())
                began = time.monotonic()
                await self._line.call(TASK_LIST, TaskListParams(limit=1))
                at_s = time.monotonic() - self._began
                answer_ms = (time.monotonic() - began) * 1_000
                times_ms = (status.loop_stall_p99_ms, status.loop_stall_max_ms, answer_ms)
                self.samples.append(self._meter.measure(at_s, status.pid, len(self._over), times_ms))
            await asyncio.sleep(_SAMPLED_EACH_S)

    async def _restart(self) -> None:
        """Restart the engine orderly several times in the run; interrupted tasks are resumed."""
        for _ in range(self._lives - 1):
            await asyncio.sleep(self._seconds / self._lives)
            self._unsubscribe()
            await end_engine(self._line, self._paths.home)
            await self._open()
            await self._catch_up()
        await asyncio.Event().wait()

    async def _catch_up(self) -> None:
        """Handle what happened while nobody was connected, and open asks."""
        for task in (await self._line.call(TASK_LIST, TaskListParams(limit=500))).tasks:
            if task.outcome.ended_at is not None:
                self._note(task)
            elif task.activity.status == "interrupted":
                await self._resume(task.id)
        for ask in (await self._line.call(ASK_LIST, AskListParams())).asks:
            await self._answer(ask)
