"""The dependencies of the handlers, assembled once by the engine's main."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from errand.engine.agent.tasks.approval_modes import ApprovalModes
from errand.engine.agent.tasks.chats import Chats
from errand.engine.agent.tasks.comparison import ModelComparison
from errand.engine.agent.tasks.conversation_agents import ConversationAgents
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.agent.tasks.locks import AgentLocks
from errand.engine.checkpoints.undo import Checkpoints
from errand.engine.core.heartbeat import LoopLatency
from errand.engine.core.secrets import KeyStore
from errand.engine.core.settings import Settings
from errand.engine.data.forgetter import Forgetter
from errand.engine.event_log import EventLog
from errand.engine.local_models.local_models import LocalModels
from errand.engine.memory.facts import Facts
from errand.engine.memory.memory import Memory
from errand.engine.models.custom_servers import CustomServers
from errand.engine.models.own_models import OwnModels
from errand.engine.models.router import ModelRouter
from errand.engine.permissions.grants import Grants
from errand.engine.skills.skills import Skills
from errand.engine.storage.database import Database
from errand.engine.tools.mcp.administration import ServerAdministration
from errand.engine.tools.sessions import ToolSessions
from errand.engine.tools.shell.login_environment import LoginEnvironment
from errand.protocol.asks import AskAnswerParams, AskAnswerResult
from errand.protocol.context import ConversationSummariseParams
from errand.protocol.notices import NoticeData
from errand.protocol.tasks.groups import QueuedKind
from errand.protocol.tasks.methods import (
    TaskMessageParams,
    TaskQueueChangeParams,
    TaskQueueRemoveParams,
    TaskRetryParams,
    TaskSetModeParams,
    TaskStartParams,
)
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths


class ShownTasks(Protocol):
    """The running tasks as shown to users. After `hand_over` the next engine resumes those that this one interrupts."""

    def shown(self) -> tuple[Task, ...]: ...
    def hand_over(self) -> None: ...


class TaskMessages(Protocol):
    """Messages that an agent has not read yet. Each method returns once the change is stored."""

    async def add(self, params: TaskMessageParams, kind: QueuedKind) -> Task: ...
    async def change(self, params: TaskQueueChangeParams) -> Task: ...
    async def remove(self, params: TaskQueueRemoveParams) -> Task: ...


class TaskResumption(Protocol):
    """Resumes tasks that the end of an engine interrupted. Each method returns at once."""

    async def go_on_after_answer(self, task_id: str) -> None: ...
    def resume_earlier_tasks(self) -> None: ...


class TaskRunner(Protocol):
    """Owns every task. Each method returns once the transition has started; the outcome arrives as events."""

    @property
    def running(self) -> ShownTasks: ...
    @property
    def messages(self) -> TaskMessages: ...
    @property
    def modes(self) -> ApprovalModes: ...
    @property
    def changes(self) -> ConversationChanges: ...
    @property
    def resumption(self) -> TaskResumption: ...
    async def start(
        self, params: TaskStartParams, version: int | None = None, remark: NoticeData | None = None
    ) -> Task: ...
    async def retry(self, params: TaskRetryParams) -> Task: ...
    async def summarise(self, params: ConversationSummariseParams) -> Task: ...
    async def stop(self, task_id: str, by: str) -> Task: ...
    async def pause(self, task_id: str) -> Task: ...
    async def resume(self, task_id: str) -> Task: ...
    async def try_now(self, task_id: str) -> Task: ...
    async def set_mode(self, params: TaskSetModeParams) -> Task: ...
    async def next_in_round(self, task_id: str) -> Task | None: ...
    async def drain(self, seconds: float) -> None: ...
    async def close(self) -> None: ...


class AskAnswers(Protocol):
    """Settles asks; the first answer wins."""

    async def answer(self, params: AskAnswerParams, by: str) -> AskAnswerResult: ...


@dataclass(frozen=True, slots=True)
class EngineInstance:
    """The running engine. `shutdown` requests its orderly end and returns at once."""

    id: str
    version: str
    started_at: datetime
    shutdown: Callable[[], None]
    loop_latency: LoopLatency


@dataclass(frozen=True, slots=True)
class ModelServices:
    """The models, and what people add to them and ask of several."""

    router: ModelRouter
    custom_servers: CustomServers
    own_models: OwnModels
    comparison: ModelComparison
    local: LocalModels


@dataclass(frozen=True, slots=True)
class ToolServices:
    """The services around tools: servers of other programs, skills, the environment of commands, open sessions."""

    mcp: ServerAdministration
    skills: Skills
    login: LoginEnvironment
    sessions: ToolSessions


@dataclass(frozen=True, slots=True)
class Services:
    """The dependencies of the handlers.

    `personality_lock` is held from the check of a personality until it is stored.
    """

    instance: EngineInstance
    log: EventLog
    database: Database
    paths: Paths
    settings: Settings
    keys: KeyStore
    runner: TaskRunner
    asks: AskAnswers
    locks: AgentLocks
    agents: ConversationAgents
    chats: Chats
    models: ModelServices
    tools: ToolServices
    grants: Grants
    memory: Memory
    facts: Facts
    forgetter: Forgetter
    checkpoints: Checkpoints
    personality_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
