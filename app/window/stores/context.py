"""What the last counted turn of the task in view sent to its model: asked for when a reply was counted."""

from PySide6.QtCore import QObject, Signal

from app.protocol.context import ContextExplainParams, ContextExplainResult
from app.protocol.tasks import Task
from app.protocol.wire import CONTEXT_EXPLAIN
from app.window.stores.session import Session


class ContextStore(QObject):
    """`explained` stays until a newer turn is counted: a task that just began has sent nothing yet."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._asked: tuple[str, int] | None = None
        self.explained: ContextExplainResult | None = None

    def look_at(self, task: Task | None) -> None:
        """The task in view, at each of its changes."""
        if task is None or not task.usage.input_tokens:
            return
        now = (task.id, task.usage.input_tokens)
        if now != self._asked:
            self._asked = now
            self._session.spawn(self._ask(now), self._on_failed)

    async def _ask(self, asked: tuple[str, int]) -> None:
        found = await self._session.call(CONTEXT_EXPLAIN, ContextExplainParams(task_id=asked[0]))
        if asked == self._asked and found.used_tokens:
            self.explained = found
            self.changed.emit()

    def _on_failed(self, text: str) -> None:
        """The line is lost, which is told elsewhere: the next change of the task asks again."""
        self._asked = None
