"""What a person does to a task from outside its conversation: resume one that was cut off."""

from PySide6.QtCore import QObject, Signal

from app.protocol.tasks import TaskIdParams
from app.protocol.wire import TASK_RESUME, TASK_STOP
from app.window.stores.session import Session


class TaskControl(QObject):
    """What comes of it is told by events; `failed` has the words for what was refused."""

    failed = Signal(str)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def stop(self, task_id: str) -> None:
        self._session.spawn(self._stop(task_id), self.failed.emit)

    def resume(self, task_id: str) -> None:
        self._session.spawn(self._resume(task_id), self.failed.emit)

    async def _stop(self, task_id: str) -> None:
        await self._session.call(TASK_STOP, TaskIdParams(task_id=task_id))

    async def _resume(self, task_id: str) -> None:
        await self._session.call(TASK_RESUME, TaskIdParams(task_id=task_id))
