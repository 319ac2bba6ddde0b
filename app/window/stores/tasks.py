"""The newest state of each task that was heard of, for tabs, inbox and tray."""

from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal

from app.protocol.tasks import Task

# Ended tasks that are remembered; older ones belong to the conversations that show them.
_MOST_ENDED = 1_000


class TaskStore(QObject):
    """`taskUpdate` gives each change as a `Task`."""

    taskUpdate = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks: dict[str, Task] = {}
        self._newest: dict[str, Task] = {}

    def get(self, task_id: str) -> Task | None:
        return self._tasks.get(task_id)

    def of_conversation(self, conversation_id: str) -> Task | None:
        """The newest task of a conversation."""
        return self._newest.get(conversation_id)

    def running(self) -> tuple[Task, ...]:
        """Those at work or waiting; the one started last comes first."""
        return tuple(task for task in self._open() if task.status != "interrupted")

    def interrupted(self) -> tuple[Task, ...]:
        """Those whose engine ended, to be resumed; the one started last comes first."""
        return tuple(task for task in self._open() if task.status == "interrupted")

    def put(self, task: Task) -> None:
        """Take a state that the engine sent."""
        if self._tasks.get(task.id) == task:
            return
        self._tasks[task.id] = task
        newest = self._newest.get(task.conversation_id)
        if newest is None or newest.id == task.id or _started(newest) < _started(task):
            self._newest[task.conversation_id] = task
        self._forget_old()
        self.taskUpdate.emit(task)

    def put_snapshot(self, tasks: Iterable[Task]) -> None:
        """Take those of a snapshot of everything, which names all that have not ended."""
        known = {task.id: task for task in tasks}
        for task in self._open():
            if task.id not in known:  # it is of an engine whose record is gone
                self._drop(task)
        for task in known.values():
            self.put(task)

    def _open(self) -> list[Task]:
        return sorted((task for task in self._tasks.values() if task.ended_at is None), key=_started, reverse=True)

    def _forget_old(self) -> None:
        if len(self._tasks) <= 2 * _MOST_ENDED:
            return
        ended = sorted((task for task in self._tasks.values() if task.ended_at is not None), key=_started)
        for task in ended[:-_MOST_ENDED]:
            self._drop(task)

    def _drop(self, task: Task) -> None:
        self._tasks.pop(task.id, None)
        newest = self._newest.get(task.conversation_id)
        if newest is not None and newest.id == task.id:
            del self._newest[task.conversation_id]


def _started(task: Task) -> tuple[float, str]:
    return task.started_at.timestamp(), task.id
