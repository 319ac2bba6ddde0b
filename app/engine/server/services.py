"""The dependencies of the handlers, assembled once by the engine's main."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.engine.agent.tasks.approval_modes import ApprovalModes
from app.engine.agent.tasks.chats import Chats
from app.engine.agent.tasks.comparison import ModelComparison
from app.engine.agent.tasks.conversation_agents import ConversationAgents
from app.engine.agent.tasks.locks import AgentLocks
from app.engine.checkpoints.contents import ContentStore
from app.engine.checkpoints.undo import Checkpoints
from app.engine.core.heartbeat import LoopLatency
from app.engine.core.secrets import KeyStore
from app.engine.core.settings import Settings
from app.engine.data.forgetter import Forgetter
from app.engine.event_log import EventLog
from app.engine.memory.facts import Facts
from app.engine.memory.memory import Memory
from app.engine.models.custom_servers import CustomServers
from app.engine.models.router import ModelRouter
from app.engine.permissions.grants import Grants
from app.engine.skills.skills import Skills
from app.engine.storage.database import Database
from app.engine.tools.mcp.administration import ServerAdministration
from app.engine.tools.sessions import ToolSessions
from app.paths import Paths
from app.protocol.asks import AskAnswerParams, AskAnswerResult
from app.protocol.context import ConversationSummariseParams
from app.protocol.notices import NoticeData
from app.protocol.tasks import (
    QueuedKind,
    Task,
    TaskMessageParams,
    TaskQueueChangeParams,
    TaskQueueRemoveParams,
    TaskRetryParams,
    TaskSetModeParams,
    TaskStartParams,
)


class TaskRunner(Protocol):
    """Owns every task. Each method returns once the transition has started; the outcome arrives as events."""

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
    def resume_earlier_tasks(self) -> None: ...
    async def close(self) -> None: ...


class ShownTasks(Protocol):
    """The running tasks as shown to users. After `hand_over` the next engine resumes those that this one interrupts."""

    def shown(self) -> tuple[Task, ...]: ...
    def hand_over(self) -> None: ...


class TaskMessages(Protocol):
    """Messages that an agent has not read yet. Each method returns once the change is stored."""

    async def add(self, params: TaskMessageParams, kind: QueuedKind) -> Task: ...
    async def change(self, params: TaskQueueChangeParams) -> Task: ...
    async def remove(self, params: TaskQueueRemoveParams) -> Task: ...


class AskAnswers(Protocol):
    """Settles asks; the first answer wins."""

    async def answer(self, params: AskAnswerParams, by: str) -> AskAnswerResult: ...


@dataclass(frozen=True, slots=True)
class Services:
    """`shutdown` requests an orderly end of the engine and returns at once."""

    log: EventLog
    database: Database
    runner: TaskRunner
    running: ShownTasks
    messages: TaskMessages
    modes: ApprovalModes
    asks: AskAnswers
    locks: AgentLocks
    agents: ConversationAgents
    chats: Chats
    comparison: ModelComparison
    models: ModelRouter
    custom_servers: CustomServers
    keys: KeyStore
    settings: Settings
    grants: Grants
    facts: Facts
    sessions: ToolSessions
    skills: Skills
    checkpoints: Checkpoints
    contents: ContentStore
    forgetter: Forgetter
    memory: Memory
    mcp: ServerAdministration
    paths: Paths
    instance_id: str
    version: str
    started_at: datetime
    shutdown: Callable[[], None]
    stalls: LoopLatency
