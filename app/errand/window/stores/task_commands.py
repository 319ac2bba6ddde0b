"""Commands on tasks outside a conversation: resume an interrupted one, play the tour."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from errand.client.tour import TOUR_TASKS, make_workspace
from errand.protocol.settings import MODEL_LIST, ModelListParams
from errand.protocol.tasks.methods import TASK_RESUME, TASK_START, TASK_STOP, TaskIdParams
from errand.text.translation import tr
from errand.window.stores.session import EngineSession


class TaskControlStore(QObject):
    """Results arrive as events; emits `failed` with a text when a call is refused."""

    failed = Signal(str)

    def __init__(self, session: EngineSession) -> None:
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


class TourStore(QObject):
    """Emits `started` with the id of each conversation, and `failed` with a text."""

    started = Signal(str)
    failed = Signal(str)

    def __init__(self, session: EngineSession, workspaces: Path) -> None:
        super().__init__()
        self._session = session
        self._workspaces = workspaces

    def play(self) -> None:
        self._session.spawn(self._play(), self.failed.emit)

    def play_for_real(self) -> None:
        """Run its three tasks with the default model."""
        self._session.spawn(self._play_for_real(), self.failed.emit)

    async def _play_for_real(self) -> None:
        model = (await self._session.call(MODEL_LIST, ModelListParams())).default
        if model is None:
            self.failed.emit(tr("No model is set up yet."))
        else:
            await self._play(model)

    async def _play(self, model: str = "") -> None:
        workspace = make_workspace(self._workspaces)
        for story in TOUR_TASKS:
            task = (await self._session.call(TASK_START, story.start_in(workspace, model))).task
            self.started.emit(task.conversation_id)
