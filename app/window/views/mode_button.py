"""What a task is taken for, the other way round: a task made a chat, a chat that has answered done as a task."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.protocol.tasks import DecidedMode, Task
from app.window.theme.look import push_button, set_tip

_CHAT = ("Make it a chat", "It was taken for a task, for it began to work. As a chat it ends with its next answer.")
_TASK = ("Make it a task", "As a task it goes on until it says that it is complete.")
_GO_ON = ("Go on as a task", "Do here what was talked about, until it is complete.")


class ModeButton(QWidget):
    """`asked` has the mode that a person wants. It is not there where nothing was decided."""

    asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._wanted: DecidedMode = "chat"
        self._button = push_button("", "quiet")
        self._button.clicked.connect(self._on_clicked)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._button)
        self.hide()

    def show_task(self, task: Task | None) -> None:
        words = _offer(task) if task is not None else None
        self.setVisible(words is not None)
        if words is None:
            return
        text, why = words
        self._wanted = "chat" if words is _CHAT else "task"
        self._button.setText(text)
        self._button.setAccessibleName(text)
        set_tip(self._button, why)

    def _on_clicked(self) -> None:
        self.asked.emit(self._wanted)


def taken_words(task: Task) -> str:
    """What a task that was left to its first reply is taken for; nothing where a person has said it."""
    return f"taken as a {task.decided}" if task.mode == "auto" and task.decided else ""


def _offer(task: Task) -> tuple[str, str] | None:
    if task.ended_at is not None:
        return _GO_ON if task.stop_reason == "completed" and "chat" in (task.mode, task.decided) else None
    if task.stopping or task.decided is None:
        return None
    if task.decided == "task":
        return _CHAT
    return _TASK if task.mode == "chat" else None  # in auto mode it is about to end
