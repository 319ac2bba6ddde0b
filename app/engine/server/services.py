"""What the handlers work with, joined once by the engine's main."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.engine.agent.chats import Chats
from app.engine.agent.claims import Claims
from app.engine.agent.comparison import Comparison
from app.engine.agent.roster import Roster
from app.engine.broadcast import EventLog
from app.engine.models.own_servers import OwnServers
from app.engine.models.router import ModelRouter
from app.engine.permissions.grants import Grants
from app.engine.secrets import KeyStore
from app.engine.settings import Settings
from app.engine.stall import StallMeter
from app.engine.storage.database import Database
from app.paths import Paths
from app.protocol.asks import AskAnswerParams, AskAnswerResult
from app.protocol.context import ConversationSummariseParams
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
    """Owns every task. Each method returns once the move has begun; what follows comes as events."""

    def under_way(self) -> tuple[Task, ...]: ...
    async def start(self, params: TaskStartParams, version: int | None = None, remark: str = "") -> Task: ...
    async def retry(self, params: TaskRetryParams) -> Task: ...
    async def summarise(self, params: ConversationSummariseParams) -> Task: ...
    async def stop(self, task_id: str, by: str) -> Task: ...
    async def pause(self, task_id: str) -> Task: ...
    async def resume(self, task_id: str) -> Task: ...
    async def try_now(self, task_id: str) -> Task: ...
    async def set_mode(self, params: TaskSetModeParams) -> Task: ...
    async def say(self, params: TaskMessageParams, kind: QueuedKind) -> Task: ...
    async def change_queued(self, params: TaskQueueChangeParams) -> Task: ...
    async def remove_queued(self, params: TaskQueueRemoveParams) -> Task: ...
    async def answer(self, params: AskAnswerParams, by: str) -> AskAnswerResult: ...
    async def after(self, task_id: str) -> Task | None: ...
    async def drain(self, seconds: float) -> None: ...
    def hand_over(self) -> None: ...
    def take_over(self) -> None: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Services:
    """`shutdown` asks the engine to end in order and returns at once."""

    log: EventLog
    database: Database
    runner: TaskRunner
    claims: Claims
    roster: Roster
    chats: Chats
    comparison: Comparison
    models: ModelRouter
    own_servers: OwnServers
    keys: KeyStore
    settings: Settings
    grants: Grants
    paths: Paths
    instance_id: str
    version: str
    started_at: datetime
    shutdown: Callable[[], None]
    stalls: StallMeter
