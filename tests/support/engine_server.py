"""A task runner without models: it starts tasks that do nothing, counts its calls, and can be made to wait."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from errand.engine.agent.run.memory.recall import RunningRecalls
from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.agent.tasks.approval_modes import ApprovalModes
from errand.engine.agent.tasks.chats import Chats
from errand.engine.agent.tasks.comparison import ModelComparison
from errand.engine.agent.tasks.conversation_agents import ConversationAgents
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.agent.tasks.locks import AgentLocks, KeyedLock
from errand.engine.background import Background
from errand.engine.checkpoints.baselines import Baselines
from errand.engine.checkpoints.contents import ContentStore
from errand.engine.checkpoints.undo import Checkpoints
from errand.engine.core.errors import AgentBusy, Conflict, NotFound
from errand.engine.core.heartbeat import LoopLatency
from errand.engine.core.secrets import KeyStore
from errand.engine.core.settings import Settings
from errand.engine.data.forgetter import Forgetter
from errand.engine.event_log import EventLog
from errand.engine.local_models.local_models import LocalModels
from errand.engine.memory.embedding import Embedder
from errand.engine.memory.facts import Facts
from errand.engine.memory.memory import open_memory
from errand.engine.models.catalog.configured import ProviderDirectory
from errand.engine.models.custom_servers import CustomServers
from errand.engine.models.own_models import OwnModels
from errand.engine.models.router import ModelRouter
from errand.engine.permissions.grants import Grants
from errand.engine.server.authentication import AccessToken
from errand.engine.server.dispatcher import ROUTES
from errand.engine.server.route import ServedMethod
from errand.engine.server.services import EngineInstance, ModelServices, Services, ToolServices
from errand.engine.server.websocket_server import Server, bind_loopback
from errand.engine.skills.skills import Skills
from errand.engine.storage.database import Database
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.engine.tools.mcp.administration import ServerAdministration
from errand.engine.tools.mcp.known import KnownServers
from errand.engine.tools.mcp.pool import McpPool
from errand.engine.tools.mcp.server import McpServer
from errand.engine.tools.sessions import ToolSessions
from errand.engine.tools.shell.login_environment import LoginEnvironment
from errand.protocol.asks import Ask, AskAnswerParams, AskAnswerResult
from errand.protocol.context import ConversationSummariseParams
from errand.protocol.conversations import Conversation
from errand.protocol.engine import PROTOCOL_VERSION, Endpoint
from errand.protocol.events import AskUpdate, ConversationUpdate, LocalModelUpdate, McpUpdate, TaskUpdate
from errand.protocol.notices import NoticeData
from errand.protocol.tasks.groups import QueuedKind, TaskActivity, TaskRequest
from errand.protocol.tasks.methods import (
    TaskMessageParams,
    TaskQueueChangeParams,
    TaskQueueRemoveParams,
    TaskRetryParams,
    TaskSetModeParams,
    TaskStartParams,
)
from errand.protocol.tasks.task import Task, replace_fields
from errand.system.paths import Paths
from tests.support.mcp_servers import judge_here, no_sandbox
from tests.support.provider_servers import NO_LOCAL_SERVERS
from tests.support.stored_records import prepare_records

TOKEN = "the-token-of-the-test"


class PlainRunner:
    """A task runner. While `gate` is cleared, every start waits. `asks` are those that can be answered."""

    def __init__(self, log: EventLog, changes: ConversationChanges, modes: ApprovalModes) -> None:
        self.running = self.messages = self.resumption = self
        self.changes = changes
        self.modes = modes
        self._log = log
        self.gate = asyncio.Event()
        self.gate.set()
        self.starting = asyncio.Event()
        self.tasks: dict[str, Task] = {}
        self.started: list[str] = []
        self.steered: list[str] = []
        self.asks: dict[str, Ask] = {}
        self.answers: list[AskAnswerParams] = []

    async def drain(self, seconds: float) -> None:
        pass

    def hand_over(self) -> None:
        pass

    def resume_earlier_tasks(self) -> None:
        pass

    async def go_on_after_answer(self, task_id: str) -> None:
        pass

    def shown(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks.values() if task.outcome.ended_at is None)

    async def start(
        self, params: TaskStartParams, version: int | None = None, remark: NoticeData | None = None
    ) -> Task:
        if params.prompt == "fail":
            raise ZeroDivisionError("a bug")
        self.started.append(params.prompt)
        self.starting.set()
        await self.gate.wait()
        now = datetime.now(UTC)
        number = len(self.tasks) + 1
        conversation_id = params.conversation_id or f"c{number}"
        conversation = Conversation(id=conversation_id, title=params.prompt, created_at=now, updated_at=now)
        task = Task(
            id=params.task_id or f"t{number}",
            conversation_id=conversation_id,
            agent_id="a1",
            started_at=now,
            request=TaskRequest(prompt=params.prompt, model="scripted/none", workspace=""),
            activity=TaskActivity(status="running"),
        )
        self.tasks[task.id] = task
        self._log.publish(ConversationUpdate(conversation=conversation))
        self._log.publish(TaskUpdate(task=task))
        return task

    async def reply(self, params: TaskStartParams) -> Task:
        return await self.start(params)

    async def retry(self, params: TaskRetryParams) -> Task:
        raise NotFound(f"There is no node {params.node_id!r}.")

    async def summarise(self, params: ConversationSummariseParams) -> Task:
        raise NotFound(f"There is no conversation {params.conversation_id!r}.")

    async def stop(self, task_id: str, by: str) -> Task:
        return self._change(replace_fields(self._task(task_id), stopping=True))

    async def pause(self, task_id: str) -> Task:
        return self._change(replace_fields(self._task(task_id), status="paused", pausing=True))

    async def resume(self, task_id: str) -> Task:
        return self._change(replace_fields(self._task(task_id), status="running", pausing=False))

    async def try_now(self, task_id: str) -> Task:
        return self._change(replace_fields(self._task(task_id), retry_at=None))

    async def set_mode(self, params: TaskSetModeParams) -> Task:
        return self._change(replace_fields(self._task(params.task_id), mode=params.mode))

    async def add(self, params: TaskMessageParams, kind: QueuedKind) -> Task:
        if kind == "follow_up":
            raise AgentBusy("The agent is at work.")
        self.steered.append(params.text)
        return self._task(params.task_id)

    async def change(self, params: TaskQueueChangeParams) -> Task:
        raise Conflict("The agent has read it.")

    async def remove(self, params: TaskQueueRemoveParams) -> Task:
        raise Conflict("The agent has read it.")

    async def next_in_round(self, task_id: str) -> Task | None:
        """No agents take turns here."""

    async def answer(self, params: AskAnswerParams, by: str) -> AskAnswerResult:
        self.answers.append(params)
        if params.ask_id not in self.asks:
            raise NotFound(f"There is no ask {params.ask_id!r}.")
        settled = msgspec.structs.replace(
            self.asks.pop(params.ask_id), status="answered", answer=params.text, allowed=params.allow, answered_by=by
        )
        self._log.publish(AskUpdate(ask=settled))
        return AskAnswerResult(won=True, ask=settled)

    async def close(self) -> None:
        """Nothing to end."""

    def _task(self, task_id: str) -> Task:
        if task_id not in self.tasks:
            raise NotFound(f"There is no task {task_id!r}.")
        return self.tasks[task_id]

    def _change(self, task: Task) -> Task:
        self.tasks[task.id] = task
        self._log.publish(TaskUpdate(task=task))
        return task


@dataclass(frozen=True, slots=True)
class EngineServer:
    services: Services
    runner: PlainRunner
    server: Server
    token: AccessToken
    ended: asyncio.Event

    @property
    def log(self) -> EventLog:
        return self.services.log

    @property
    def database(self) -> Database:
        return self.services.database

    def endpoint(self) -> Endpoint:
        return Endpoint(
            url=self.server.url,
            port=self.server.port,
            pid=1,
            token=TOKEN,
            instance_id=self.services.instance.id,
            protocol_version=PROTOCOL_VERSION,
        )


@asynccontextmanager
async def engine_server(
    home: Path, *, port: int = 0, routes: Sequence[ServedMethod] = ROUTES, instance_id: str = "engine_test"
) -> AsyncGenerator[EngineServer]:
    """An engine server. Opened again on the same home it behaves like an engine after a restart."""
    paths = Paths(home)
    prepare_records(paths)
    settings = Settings(paths.settings)
    database = await Database.open(settings.values.database_url or sqlite_url(paths.database), paths.copies)
    log = EventLog(database.journal, database.epoch, (await database.events.bounds())[1])
    keys = KeyStore(paths.keys, NO_LOCAL_SERVERS, lambda: None)
    background = Background()
    local = LocalModels(
        paths,
        lambda: settings.values,
        lambda model: log.publish(LocalModelUpdate(model=model)),
        background,
        home=paths.home / "home",
    )
    models = ModelRouter(keys, home, settings=lambda: settings.values, lists=paths.models, local=local)
    asks = PendingAsks(log, database.asks)
    locks = AgentLocks(database, asks)
    changes = ConversationChanges(log, database)
    modes = ApprovalModes(log, database, changes, asks, KeyedLock(), tuple)
    runner = PlainRunner(log, changes, modes)
    roster = ConversationAgents(log, database, changes, locks, paths)
    ended = asyncio.Event()
    token = AccessToken(TOKEN, lambda _: None)
    pool = McpPool(settings, keys, KnownServers(paths.mcp_known), no_sandbox, judge_here)

    def mcp_changed(mcp_server: McpServer) -> None:
        log.publish(McpUpdate(name=mcp_server.spec.name, state=mcp_server.state, problem=mcp_server.problem))

    pool.changed = mcp_changed
    contents = ContentStore(paths.replaced)
    checkpoints = Checkpoints(log, database, Baselines(contents, paths.replaced / "git", paths.home))
    await checkpoints.recover()
    facts = Facts(log, database, keys.redactor)
    sessions = ToolSessions()
    stack = AsyncExitStack()
    embedder = Embedder(lambda: paths.embedding)
    memory = await open_memory(database, log, settings, paths, keys, embedder, stack)
    own_models = OwnModels(settings, ProviderDirectory(lambda: settings.values))
    services = Services(
        instance=EngineInstance(
            id=instance_id,
            version="0",
            started_at=datetime.now(UTC),
            shutdown=ended.set,
            loop_latency=LoopLatency(),
        ),
        log=log,
        database=database,
        paths=paths,
        settings=settings,
        keys=keys,
        runner=runner,
        asks=runner,
        locks=locks,
        agents=roster,
        chats=Chats(database, roster, runner),
        models=ModelServices(
            router=models,
            custom_servers=CustomServers(settings, keys, models.available, own_models),
            own_models=own_models,
            comparison=ModelComparison(database, roster, runner, models, settings),
            local=local,
        ),
        tools=ToolServices(
            mcp=ServerAdministration(settings, keys, pool),
            skills=Skills(paths, paths.home / "home"),
            login=LoginEnvironment(lambda: False, lambda work, name: asyncio.create_task(work, name=name)),
            sessions=sessions,
        ),
        grants=Grants(),
        memory=memory,
        facts=facts,
        forgetter=Forgetter(log, database, changes, locks, memory, facts, sessions, RunningRecalls(), paths),
        checkpoints=checkpoints,
    )
    server = Server(services, token, bind_loopback(port), routes)
    await server.start()
    try:
        yield EngineServer(services, runner, server, token, ended)
    finally:
        await server.close()
        await stack.aclose()
        await pool.close()
        await models.close()
        await background.close()
        await local.close()
        contents.close()
        log.deltas.close()
        await database.close()
