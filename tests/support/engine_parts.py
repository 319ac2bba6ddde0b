"""A whole engine in this process, without its socket: for tests of the task runner."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from errand.engine.core.secrets import KeyStore
from errand.engine.event_log import Frame
from errand.engine.main import open_services
from errand.engine.models.recovery.retry import RetryPolicy
from errand.engine.server.services import Services
from errand.protocol.asks import Ask
from errand.protocol.conversations import Node
from errand.protocol.events import AskUpdate, Delta, Event, EventRecord, TaskMessage, TaskUpdate
from errand.protocol.tasks.groups import ApproveMode, NetworkMode, QueuedKind, TaskMode
from errand.protocol.tasks.methods import TaskMessageParams, TaskStartParams
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from tests.support.limits import WAIT_LIMIT_S
from tests.support.model_server import ModelServer
from tests.support.provider_servers import NO_LOCAL_SERVERS
from tests.support.stored_records import copy_records, prepare_records

_RETRY = RetryPolicy()


@dataclass(slots=True)
class Watcher:
    """Sees what a client would see, and waits for events."""

    events: list[Event] = field(default_factory=list[Event])
    deltas: list[Delta] = field(default_factory=list[Delta])
    _awaited: dict[asyncio.Future[None], Callable[[], bool]] = field(
        default_factory=dict["asyncio.Future[None]", Callable[[], bool]]
    )

    def on_event(self, record: EventRecord, frame: Frame) -> None:
        self.events.append(record.event)
        self._check_conditions()

    def on_delta(self, delta: Delta, data: bytes) -> None:
        self.deltas.append(delta)
        self._check_conditions()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds or has held after an event: none is skipped when several arrive at once."""
        if condition():
            return
        holds = asyncio.get_running_loop().create_future()
        self._awaited[holds] = condition
        try:
            async with asyncio.timeout(WAIT_LIMIT_S):
                await holds
        finally:
            del self._awaited[holds]

    def _check_conditions(self) -> None:
        for holds, condition in self._awaited.items():
            if holds.done():
                continue
            try:
                if condition():
                    holds.set_result(None)
            except Exception as error:  # noqa: BLE001 -- fails the test that waits, not the engine
                holds.set_exception(error)

    def tasks(self, task_id: str) -> list[Task]:
        """All states of a task, oldest first."""
        return [event.task for event in self.events if isinstance(event, TaskUpdate) and event.task.id == task_id]

    def nodes(self) -> list[Node]:
        """The newest state of each node, in order of arrival."""
        newest = {event.node.id: event.node for event in self.events if isinstance(event, TaskMessage)}
        return list(newest.values())

    async def task(self, task_id: str, condition: Callable[[Task], bool]) -> Task:
        """The first state of a task, from its newest one on, for which the condition holds."""
        first = max(len(self.tasks(task_id)) - 1, 0)
        await self.until(lambda: any(map(condition, self.tasks(task_id)[first:])))
        return next(filter(condition, self.tasks(task_id)[first:]))

    async def end(self, task_id: str) -> Task:
        return await self.task(task_id, lambda task: task.outcome.ended_at is not None)

    async def ask(self, task_id: str) -> Ask:
        """The open ask of a task."""
        waiting: list[Ask] = []

        def look() -> bool:
            asks = {event.ask.id: event.ask for event in self.events if isinstance(event, AskUpdate)}
            waiting[:] = [ask for ask in asks.values() if ask.task_id == task_id and ask.status == "waiting"]
            return bool(waiting)

        await self.until(look)
        return waiting[-1]


@dataclass(frozen=True, slots=True)
class EngineParts:
    services: Services
    watcher: Watcher
    model: ModelServer
    workspace: Path

    async def start(
        self,
        prompt: str = "go",
        *,
        approve: ApproveMode | None = "all",
        attended: bool | None = None,
        mode: TaskMode = "auto",
        max_turns: int | None = None,
        conversation_id: str | None = None,
        task_id: str | None = None,
        personality_id: str | None = None,
        attachments: tuple[str, ...] = (),
        api_key: str | None = "sk-test-key-of-the-tests",
        network: NetworkMode | None = None,
    ) -> Task:
        """Start a task that uses the model server. By default it is attended if its mode asks a person."""
        params = TaskStartParams(
            prompt=prompt,
            task_id=task_id,
            conversation_id=conversation_id,
            model="openai_compatible/test-model",
            api_base=self.model.url,
            api_key=api_key,
            workspace=None if conversation_id else str(self.workspace),
            approve=approve,
            attended=approve in (None, "ask", "edits", "auto") if attended is None else attended,
            mode=mode,
            max_turns=max_turns,
            personality_id=personality_id,
            attachments=attachments,
            network=network,
        )
        return await self.services.runner.start(params)

    async def say(self, task_id: str, text: str, kind: QueuedKind = "steer", attachments: tuple[str, ...] = ()) -> Task:
        params = TaskMessageParams(task_id=task_id, text=text, attachments=attachments)
        return await self.services.runner.messages.add(params, kind)


@asynccontextmanager
async def engine_parts(home: Path, model: ModelServer, retry: RetryPolicy = _RETRY) -> AsyncGenerator[EngineParts]:
    """A whole engine. Opened again on the same home it behaves like an engine after a restart."""
    paths = Paths(home / "data")
    prepare_records(paths)
    workspace = home / "workspace"
    workspace.mkdir(exist_ok=True)
    async with model, AsyncExitStack() as stack:
        services = await open_services(paths, KeyStore(paths.keys, NO_LOCAL_SERVERS), lambda: None, stack, retry)
        watcher = Watcher()
        stack.callback(services.log.attach(watcher))
        yield EngineParts(services, watcher, model, workspace)


async def remembered(engine: EngineParts) -> None:
    """Wait until memory has all that is stored."""
    async with asyncio.timeout(WAIT_LIMIT_S):
        while (await engine.services.memory.stats()).to_index:  # noqa: ASYNC110 -- it sets no event
            await asyncio.sleep(0.02)


def crash(engine: EngineParts, home: Path) -> int:
    """Copy the current state into another home, as if the engine had been killed; returns the model server's port."""
    shutil.copytree(engine.services.paths.home, home / "data", ignore=shutil.ignore_patterns("run"))
    copy_records(Paths(home / "data"))
    return int(engine.model.url.split(":")[2].split("/")[0])


async def branch(engine: EngineParts, conversation_id: str) -> tuple[Node, ...]:
    (agent,) = await engine.services.database.agents.list(conversation_id)
    assert agent.head_id is not None
    return await engine.services.database.nodes.path(agent.head_id)
