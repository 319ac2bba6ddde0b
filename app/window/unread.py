"""Which finished tasks nobody has looked at yet; kept over a restart of the window."""

from collections.abc import Callable
from datetime import UTC, datetime

from PySide6.QtCore import QObject, Signal

from app.protocol.tasks import Task
from app.window.state import WindowState
from app.window.stores.tasks import TaskStore


class UnreadStore(QObject):
    """A task is news when it ends on its own while its conversation is not `in_front`."""

    changed = Signal()

    def __init__(self, tasks: TaskStore, state: WindowState, in_front: Callable[[], str]) -> None:
        super().__init__()
        self._tasks = tasks
        self._state = state
        self._in_front = in_front
        started_before = state.kept.seen_at > datetime.fromtimestamp(0, UTC)
        self._since = state.kept.seen_at if started_before else datetime.now(UTC)
        self._settled: set[str] = set()
        tasks.taskUpdate.connect(self._on_task_update)

    def finished(self) -> tuple[Task, ...]:
        """Newest end first."""
        known = [task for task in map(self._tasks.get, self._state.kept.unread) if task is not None]
        return tuple(reversed(known))

    def count(self, conversation_id: str) -> int:
        return sum(task.conversation_id == conversation_id for task in self.finished())

    def read(self, conversation_id: str) -> None:
        """The person looks at this conversation."""
        read = {task.id for task in self.finished() if task.conversation_id == conversation_id}
        if read:
            self._state.kept.unread = [task_id for task_id in self._state.kept.unread if task_id not in read]
            self._state.save_soon()
            self.changed.emit()

    def dismiss(self, task_id: str) -> None:
        """The person has seen that this one ended."""
        if task_id in self._state.kept.unread:
            self._state.kept.unread = [known for known in self._state.kept.unread if known != task_id]
            self._state.save_soon()
            self.changed.emit()

    def dismiss_all(self) -> None:
        if self._state.kept.unread:
            self._state.kept.unread = []
            self._state.save_soon()
            self.changed.emit()

    def _on_task_update(self, task: Task) -> None:
        kept = self._state.kept
        if task.ended_at is None or task.id in self._settled:
            return
        self._settled.add(task.id)
        kept.seen_at = max(kept.seen_at, task.ended_at)
        self._state.save_soon()
        is_news = task.ended_at > self._since and task.stop_reason != "manual_stop" and task.id not in kept.unread
        if is_news and task.conversation_id != self._in_front():
            kept.unread.append(task.id)
            self.changed.emit()
