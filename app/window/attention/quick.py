"""Quick tasks: started in the background with the folder, the model and all else that was chosen the last time."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication

from app.protocol.tasks import TaskStartParams
from app.protocol.wire import TASK_START
from app.window.attention.quick_dialog import QuickDialog
from app.window.state import WindowState
from app.window.stores.session import Session
from app.window.theme.theme import Theme

_DRAFT = "quick"


class Quick(QObject):
    """`opened` gives the conversation that the person wants to see, `left` says that the dialog is gone."""

    opened = Signal(str)
    left = Signal()
    started = Signal(str)
    failed = Signal(str)

    def __init__(self, application: QApplication, session: Session, state: WindowState, theme: Theme) -> None:
        super().__init__()
        self._application = application
        self._session = session
        self._state = state
        self._theme = theme
        self._conversation_id = ""
        self._due: TaskStartParams | None = None
        session.state_changed.connect(self._on_state_changed)
        self.dialog: QuickDialog | None = None

    def open(self) -> None:
        """In the middle of the screen the person is at; a second time it is the same one."""
        dialog = self.dialog or self._make()
        dialog.show_with(self._state.kept.drafts.get(_DRAFT, ""), self._circumstances())
        screen = self._application.screenAt(QCursor.pos()) or self._application.primaryScreen()
        dialog.open_on(screen)

    def _make(self) -> QuickDialog:
        self.dialog = dialog = QuickDialog(self._theme)
        dialog.submitted.connect(self._on_submitted)
        dialog.edited.connect(self._on_edited)
        dialog.open_asked.connect(self._on_open_asked)
        dialog.finished.connect(self.left)
        self.started.connect(dialog.tell_started)
        self.failed.connect(dialog.tell_failed)
        return dialog

    def _circumstances(self) -> str:
        options = self._state.kept.options
        folder = f"in {Path(options.workspace).name}" if options.workspace else "in a new folder"
        return f"{folder} · {options.model or 'the default model'}"

    def _on_edited(self, text: str) -> None:
        self._state.keep_draft(_DRAFT, text)

    def _on_submitted(self, prompt: str) -> None:
        """Who writes faster than the engine starts need not wait for it."""
        self._due = self._state.kept.options.start(prompt, None)
        self._on_state_changed()

    def _on_state_changed(self) -> None:
        if self._due is None or self._session.state == "connecting":
            return
        due, self._due = self._due, None
        if self._session.has_line:
            self._session.spawn(self._start(due), self.failed.emit)
        else:
            self.failed.emit(self._session.reason)

    async def _start(self, params: TaskStartParams) -> None:
        task = (await self._session.call(TASK_START, params)).task
        self._conversation_id = task.conversation_id
        self._state.keep_draft(_DRAFT, "")
        self.started.emit(task.prompt)

    def _on_open_asked(self) -> None:
        self.opened.emit(self._conversation_id)
