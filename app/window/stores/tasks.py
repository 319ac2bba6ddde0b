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
        self._at_work: dict[str, dict[str, Task]] = {}
        self._newest: dict[str, Task] = {}  # by conversation and by agent: no id is one of both

    def get(self, task_id: str) -> Task | None:
        return self._tasks.get(task_id)

    def of_conversation(self, conversation_id: str) -> Task | None:
        """The task that says most of a conversation: one that waits for a person, else one at work, else the newest."""
        at_work = self._at_work.get(conversation_id, {}).values()
        told = max(at_work, key=_told, default=None)
        return told or self._newest.get(conversation_id)

    def at_work(self, conversation_id: str) -> tuple[Task, ...]:
        """Those of a conversation that work or wait, in the order in which they were started."""
        return tuple(sorted(self._at_work.get(conversation_id, {}).values(), key=_started))

    def of_agent(self, agent_id: str) -> Task | None:
        """The newest task of an agent."""
        return self._newest.get(agent_id)

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
        for whose in (task.conversation_id, task.agent_id):
            newest = self._newest.get(whose)
            if newest is None or newest.id == task.id or _started(newest) < _started(task):
                self._newest[whose] = task
        self._put_at_work(task)
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

    def _put_at_work(self, task: Task) -> None:
        at_work = self._at_work.setdefault(task.conversation_id, {})
        if task.ended_at is None and task.status != "interrupted":
            at_work[task.id] = task
        else:
            at_work.pop(task.id, None)
        if not at_work:
            del self._at_work[task.conversation_id]

    def _forget_old(self) -> None:
        if len(self._tasks) <= 2 * _MOST_ENDED:
            return
        ended = sorted((task for task in self._tasks.values() if task.ended_at is not None), key=_started)
        for task in ended[:-_MOST_ENDED]:
            self._drop(task)

    def _drop(self, task: Task) -> None:
        self._tasks.pop(task.id, None)
        self._at_work.get(task.conversation_id, {}).pop(task.id, None)
        for whose in (task.conversation_id, task.agent_id):
            newest = self._newest.get(whose)
            if newest is not None and newest.id == task.id:
                del self._newest[whose]


def _told(task: Task) -> tuple[bool, tuple[float, str]]:
    return task.status == "waiting_user", _started(task)


def _started(task: Task) -> tuple[float, str]:
    return task.started_at.timestamp(), task.id


def is_working(task: Task) -> bool:
    """True while a task takes words: it has not ended and was not interrupted."""
    return task.ended_at is None and task.status != "interrupted"


def is_interrupted(task: Task | None) -> bool:
    return task is not None and task.status == "interrupted"
