"""The approval mode of a conversation: its change, which its tasks follow at once."""

from collections.abc import Callable, Iterable

import msgspec

from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.agent.run.task_run import TaskRun
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.agent.tasks.locks import KeyedLock
from errand.engine.core.errors import NotFound
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.protocol.conversations import Conversation
from errand.protocol.events import TaskUpdate
from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.task import Task, replace_fields


class ApprovalModes:
    """Holds the modes changed since the engine started: a task that is being started may have an older one."""

    def __init__(
        self,
        log: EventLog,
        database: Database,
        changes: ConversationChanges,
        asks: PendingAsks,
        task_locks: KeyedLock,
        runs: Callable[[], Iterable[TaskRun]],
    ) -> None:
        """`task_locks` are held while a task that does not run is changed."""
        self._log = log
        self._database = database
        self._changes = changes
        self._asks = asks
        self._task_locks = task_locks
        self._runs = runs
        self._changed: dict[str, ApproveMode] = {}

    async def change(self, conversation_id: str, mode: ApproveMode, by: str, *, attended: bool) -> Conversation:
        """Set the mode for all tasks, running or interrupted, and settle the approvals that it allows or denies.

        It holds at once; returns when it is stored. `attended`: a person chose it, who can be asked.
        """
        attended = attended and mode in ("ask", "edits", "auto")
        self._changed[conversation_id] = mode
        for run in self._running(conversation_id):
            run.set_approve(mode, attended=attended)
        self._asks.settle_in_mode(conversation_id, mode, by)
        try:
            conversation = await self._changes.change(conversation_id, self._with_newest_mode)
        except NotFound:
            self._changed.pop(conversation_id, None)
            raise
        for task in await self._database.tasks.active():
            if task.conversation_id == conversation_id and task.activity.status == "interrupted":
                await self._change_idle(task.id, attended=attended)
        await self._log.flush()
        return conversation

    async def _change_idle(self, task_id: str, *, attended: bool) -> None:
        """Change a task unless it runs again, or was stopped, meanwhile."""
        async with self._task_locks.lock(task_id):
            task = await self._database.tasks.get(task_id)
            if (
                task is None
                or task.activity.status != "interrupted"
                or any(run.task.id == task_id for run in self._runs())
            ):
                return
            mode = self._changed.get(task.conversation_id, task.options.approve)
            if mode != task.options.approve:
                changed = replace_fields(task, approve=mode, attended=attended or task.options.attended)
                self._log.publish(TaskUpdate(task=changed))
                await self._log.flush()

    def _with_newest_mode(self, conversation: Conversation) -> Conversation:
        mode = self._changed.get(conversation.id, conversation.approve)
        return msgspec.structs.replace(conversation, approve=mode)

    def _running(self, conversation_id: str) -> tuple[TaskRun, ...]:
        return tuple(run for run in self._runs() if run.task.conversation_id == conversation_id)

    def follow(self, run: TaskRun) -> None:
        """Apply a change that came while the task was being started."""
        mode = self._changed.get(run.task.conversation_id)
        if mode is not None and run.task.options.approve != "never":
            run.set_approve(mode, attended=False)


def inherited(task: Task) -> ApproveMode | None:
    """Return the mode of a task that follows this one: the conversation's, unless nobody was there."""
    return "never" if task.options.approve == "never" else None
