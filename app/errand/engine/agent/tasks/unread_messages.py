"""Messages to tasks that are running or interrupted: queued, changed and removed until the agent has read them."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from errand.engine.agent.run.queued_messages import QueuedEntries, queued_node_id, with_changed_entry, without_entry
from errand.engine.agent.run.task_builder import TaskBuilder
from errand.engine.agent.run.task_state import status_text
from errand.engine.agent.tasks.locks import KeyedLock
from errand.engine.agent.tasks.running_tasks import RunningTasks
from errand.engine.core.errors import EngineError, IllegalMove, InvalidParams, StorageError
from errand.engine.core.ids import new_id
from errand.protocol.events import TaskUpdate
from errand.protocol.tasks.groups import Queued, QueuedKind
from errand.protocol.tasks.methods import TaskMessageParams, TaskQueueChangeParams, TaskQueueRemoveParams
from errand.protocol.tasks.task import Task, replace_fields


class UnreadMessages:
    """Each method returns once the change is stored. `locks` are held for each task that starts or changes."""

    def __init__(self, builder: TaskBuilder, running: RunningTasks, locks: KeyedLock) -> None:
        self._log = builder.log
        self._database = builder.database
        self._attachments = builder.attachments
        self._running = running
        self._locks = locks
        self._engine_started_at = datetime.now(UTC)

    async def add(self, params: TaskMessageParams, kind: QueuedKind) -> Task:
        """Queue a message for a running task."""
        if not params.text.strip() and not params.attachments:
            raise InvalidParams("The text is empty.")
        task = await self._running.find_task(params.task_id)
        if task is not None and await self._is_queued_or_read(task, params.queued_id):
            return task
        run = await self._running.require(params.task_id)
        entry = Queued(
            id=params.queued_id or new_id("queued"),
            kind=kind,
            text=params.text,
            queued_at=datetime.now(UTC),
            attachments=await self._attachments.store(params.attachments),
        )
        run.queue_message(entry)
        try:
            await self._log.flush()
        except StorageError:
            with suppress(EngineError):  # the client will retry: remove the unread message
                run.edit_queue(lambda queue: without_entry(queue, entry.id))
            raise
        return run.task

    async def change(self, params: TaskQueueChangeParams) -> Task:
        """Edit a message, also while the task is interrupted. Raises `Conflict` once the agent has read it."""
        return await self._edit(params.task_id, lambda queue: with_changed_entry(queue, params))

    async def remove(self, params: TaskQueueRemoveParams) -> Task:
        return await self._edit(params.task_id, lambda queue: without_entry(queue, params.queued_id))

    async def _edit(self, task_id: str, change: Callable[[QueuedEntries], QueuedEntries]) -> Task:
        async with self._locks.lock(task_id):
            run = self._running.get(task_id)
            if run is None:
                task = await self._running.stored_task(task_id)
                if task.activity.status != "interrupted":
                    raise IllegalMove(
                        f"The task is {status_text(task.activity.status)}: nothing waits to be read any more."
                    )
                task = replace_fields(task, queue=change(task.queue))
                self._log.publish(TaskUpdate(task=task))
            else:
                run.edit_queue(change)
                task = run.task
            await self._log.flush()
        return task

    async def _is_queued_or_read(self, task: Task, queued_id: str | None) -> bool:
        """Return True if the message is queued, or if the agent had read it before an earlier engine could respond.

        Tasks of this engine need no lookup in storage, which would delay the message behind later requests.
        """
        if queued_id is None:
            return False
        waits = any(entry.id == queued_id for entry in task.queue)
        if waits or task.started_at >= self._engine_started_at:
            return waits
        return await self._database.nodes.get(queued_node_id(task.id, queued_id)) is not None
