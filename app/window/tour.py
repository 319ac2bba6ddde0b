"""Plays the tour in the window: starts its three tasks and says which conversations they are in."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.client.tour import STORIES, make_workspace
from app.protocol.wire import TASK_START
from app.window.stores.session import Session


class TourStore(QObject):
    """`started` gives the id of each conversation; `failed` has the words for what did not work."""

    started = Signal(str)
    failed = Signal(str)

    def __init__(self, session: Session, workspaces: Path) -> None:
        super().__init__()
        self._session = session
        self._workspaces = workspaces

    def play(self) -> None:
        self._session.spawn(self._play(), self.failed.emit)

    async def _play(self) -> None:
        workspace = make_workspace(self._workspaces)
        for story in STORIES:
            task = (await self._session.call(TASK_START, story.start_in(workspace))).task
            self.started.emit(task.conversation_id)
