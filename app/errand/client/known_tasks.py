"""The tasks that a connection knows: the engine sends a task once, and then what of it changes."""

from collections.abc import Iterable

from errand.protocol.base import Wire
from errand.protocol.engine import SubscribeResult
from errand.protocol.events import EventRecord, LogRecord, TaskUpdate
from errand.protocol.tasks.change import TaskChange
from errand.protocol.tasks.methods import TaskListResult, TaskResult, TaskStartResult
from errand.protocol.tasks.task import Task


class KnownTasks:
    """Makes whole tasks of changes, for all listeners of a connection. Keeps the tasks that have not ended."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def learn(self, result: Wire) -> None:
        """Take over the tasks of an answer.

        Those of a snapshot replace what is known. Another answer may be older than the events that arrived before it,
        so it only adds a task: a client that follows what it caused, as `errand stop` does, knows it from there.
        """
        match result:
            case SubscribeResult(snapshot=snapshot) if snapshot is not None:
                for task in snapshot.tasks:
                    self._put(task)
            case TaskListResult(tasks=tasks):
                self._add(tasks)
            case TaskResult(task=task) | TaskStartResult(task=task):
                self._add((task,))
            case _:
                pass

    def whole(self, record: LogRecord) -> EventRecord | None:
        """Return an event with its whole task; None for a change of a task that this client never got."""
        event = record.event
        if isinstance(event, TaskChange):
            task = self._tasks.get(event.task_id)
            if task is None:
                return None
            event = TaskUpdate(task=event.applied_to(task))
        if isinstance(event, TaskUpdate):
            self._put(event.task)
        return EventRecord(sequence=record.sequence, epoch=record.epoch, event=event)

    def _add(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            if task.outcome.ended_at is None:
                self._tasks.setdefault(task.id, task)

    def _put(self, task: Task) -> None:
        if task.outcome.ended_at is None:
            self._tasks[task.id] = task
        else:
            self._tasks.pop(task.id, None)
