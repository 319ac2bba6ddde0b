"""The state shared by the features of one task, and the tools of the task."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.loop.hooks import PendingCall
from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.agent.run.queued_messages import QueuedMessages
from errand.engine.agent.run.task_state import TaskState
from errand.engine.agent.tool_offer.choice import ToolChoice
from errand.engine.agent.tool_offer.offer import ToolOffer
from errand.engine.core.errors import FolderNotAnswering
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.engine.tools.base import Access, GuardedTool
from errand.engine.tools.results import ToolError
from errand.protocol.base import JsonObject

T = TypeVar("T")

# Time limit for looking up the effects of a call, and for judging them, on a disk that may not respond.
CHECK_S = 5.0
_ACCESS_TIMED_OUT = (
    f"What this call would touch could not be found out within {CHECK_S:g} s: the disk does not answer, "
    "or the machine is very busy. It was not run. Try it once more, or do it in smaller steps."
)


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The state shared by the features of one task."""

    state: TaskState
    branch: BranchWriter
    queue: QueuedMessages
    asks: PendingAsks
    log: EventLog
    database: Database


class TaskTools:
    """The tools of one task: report the effects of a call, and run only what was allowed.

    `offer` is how the model is told of them. It changes with the model that its server has.
    """

    def __init__(self, tools: tuple[GuardedTool, ...], workspace: Path, choice: ToolChoice) -> None:
        self._own = tools
        self._workspace = workspace
        self._choice = choice
        self._use(tools)

    def choose(self, choice: ToolChoice) -> None:
        """Offer the tools in another way from the next request on."""
        if choice != self._choice:
            self._choice = choice
            self._use(self.all)

    def set_service_tools(self, tools: tuple[GuardedTool, ...]) -> None:
        """The tools of connected servers, beside the task's own, whose names win."""
        own = {tool.name for tool in self._own}
        self._use((*self._own, *(tool for tool in tools if tool.name not in own)))

    def _use(self, tools: tuple[GuardedTool, ...]) -> None:
        self.all = tools
        self._by_name = {tool.name: tool for tool in tools}
        self.offer = ToolOffer(tools, self._choice)

    async def access_of(self, pending: PendingCall) -> Access:
        """Return the current effects of a call, from a thread of the workspace.

        Raises `ToolError` if the disk is silent.
        """
        access, _ = await self.judged(pending, lambda access: None)
        return access

    async def judged(self, pending: PendingCall, judge: Callable[[Access], T]) -> tuple[Access, T | None]:
        """Return the current effects of a call and what `judge` says of them, from one visit to a thread of the
        workspace.

        Without a judgement if only that takes too long. Raises `ToolError` if the disk is silent.
        """
        accesses = list[Access]()

        def look() -> T:
            access = self._tool_of(pending).access(pending.arguments)
            has_content = bool(access.writes or access.code or access.service)
            accesses.append(replace(access, content=content_of(pending.arguments)) if has_content else access)
            return judge(accesses[0])

        try:
            judgement = await in_workspace(self._workspace, look, CHECK_S)
        except FolderNotAnswering as error:
            if not accesses:
                raise ToolError(_ACCESS_TIMED_OUT) from error
            return accesses[0], None
        return accesses[0], judgement

    def allow(self, pending: PendingCall, access: Access) -> None:
        """Permit the call exactly as described by `access`."""
        self._tool_of(pending).allow(pending.call.id, access)

    def _tool_of(self, pending: PendingCall) -> GuardedTool:
        return self._by_name[pending.call.name]


def content_of(arguments: JsonObject) -> str:
    """Return a fingerprint of a call's arguments."""
    return hashlib.blake2b(msgspec.json.encode(arguments, order="deterministic"), digest_size=16).hexdigest()
