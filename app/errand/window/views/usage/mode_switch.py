"""The button that turns a task into a chat, or a chat into a task."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from errand.protocol.tasks.groups import DecidedMode
from errand.protocol.tasks.task import Task
from errand.text.translation import tr
from errand.window.theme.style import push_button, set_tool_tip
from errand.window.widgets.boxes import set_hbox

_CHAT = (
    tr("Treat as chat"),
    tr("The agent took this as a task because it started working. A chat ends with the next reply."),
)
_TASK = (tr("Treat as task"), tr("A task continues until the agent says it's complete."))
_CONTINUE_AS_TASK = (tr("Keep going until done"), tr("Do what was discussed, until it's complete."))


class ModeSwitchView(QWidget):
    """The switch between task and chat. Emits `mode_requested`. Hidden while no mode is decided.

    `of_ended`: for ended tasks alone, which can go on; otherwise for those at work.
    """

    mode_requested = Signal(str)

    def __init__(self, *, of_ended: bool) -> None:
        super().__init__()
        self._of_ended = of_ended
        self._wanted: DecidedMode = "chat"
        self._button = push_button("", "quiet")
        self._button.clicked.connect(self._on_clicked)
        set_hbox(self, self._button)
        self.hide()

    def show_task(self, task: Task | None) -> None:
        is_shown = task is not None and (task.outcome.ended_at is not None) == self._of_ended
        offer = _offered_mode(task) if task is not None and is_shown else None
        self.setVisible(offer is not None)
        if offer is None:
            return
        text, why = offer
        self._wanted = "chat" if offer is _CHAT else "task"
        self._button.setText(text)
        self._button.setAccessibleName(text)
        set_tool_tip(self._button, why)

    def _on_clicked(self) -> None:
        self.mode_requested.emit(self._wanted)


def _offered_mode(task: Task) -> tuple[str, str] | None:
    if task.outcome.ended_at is not None:
        return (
            _CONTINUE_AS_TASK
            if task.outcome.stop_reason == "completed" and "chat" in (task.options.mode, task.options.decided)
            else None
        )
    if task.activity.stopping or task.options.decided is None:
        return None
    if task.options.decided == "task":
        return _CHAT
    return _TASK if task.options.mode == "chat" else None  # an auto task is about to end
