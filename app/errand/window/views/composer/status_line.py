"""The line under the transcript: what the task does, for how long and for how much, and what can be done about it."""

import time

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from errand.client.conversation.task_states import can_pause, is_paused
from errand.client.number_format import duration, elapsed, money, time_left
from errand.protocol.tasks.task import Task
from errand.text.translation import tr, trn
from errand.window.stores.tasks import task_activity
from errand.window.theme.style import Tone, push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.usage.context_bar import ContextBarView
from errand.window.views.usage.mode_switch import ModeSwitchView
from errand.window.widgets.accessibility import announce
from errand.window.widgets.boxes import STRETCH, set_hbox
from errand.window.widgets.buttons import ShortcutToolTip
from errand.window.widgets.labels import ElidedLabel
from errand.window.widgets.status_dot import DotState, dot_state

_TICK_MS = 1000
_TONES: dict[DotState, Tone] = {
    "idle": "muted",
    "paused": "waiting",
    "working": "muted",
    "waiting": "waiting",
    "held": "waiting",
    "done": "done",
    "ended": "muted",
    "unfinished": "waiting",
    "failed": "failed",
    "stopped": "muted",
}


class StatusLineView(QWidget):
    """One message: the state, then the time and the cost; the popover of the context has the rest.

    Its timer runs only while a task runs and the line is visible.
    """

    try_now_requested = Signal()
    changes_requested = Signal()
    pause_requested = Signal()

    def __init__(self, theme: Theme, context: ContextBarView) -> None:
        super().__init__()
        self._task: Task | None = None
        self._told_at = 0.0  # when the engine told how long the task has worked
        self._full_activity = ""
        self._reminder = ""
        self._context = context
        self._activity = ElidedLabel(theme, size=theme.tokens.size_small)
        self._most_activity = theme.tokens.column // 5
        self._figures = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._try_now = push_button(tr("Try now"), "quiet")
        set_tool_tip(self._try_now, tr("Retry now instead of waiting for the rate limit"))
        self._try_now.clicked.connect(self.try_now_requested)
        self._try_now.hide()
        self._pause = push_button(tr("Pause"), "quiet")
        ShortcutToolTip(self._pause, tr("Pause before the next step, or resume"), "pause")
        self._pause.clicked.connect(self.pause_requested)
        self._pause.hide()
        self.mode = ModeSwitchView(of_ended=True)
        self._changes = push_button("", "quiet")
        ShortcutToolTip(self._changes, tr("Review the changed files"), "review")
        self._changes.clicked.connect(self.changes_requested)
        self._changes.hide()
        set_hbox(
            self,
            self._activity,
            self._figures,
            STRETCH,
            self._try_now,
            self._pause,
            self.mode,
            self._changes,
            context,
            spacing=theme.tokens.space_tight,
            margins=(theme.tokens.space_normal, 0, theme.tokens.space_normal, 0),
        )
        self._clock = QTimer(self)
        self._clock.setInterval(_TICK_MS)
        self._clock.timeout.connect(self._on_tick)

    @property
    def text(self) -> str:
        """The complete text."""
        return " ".join(part for part in (self._activity.full_text, self._figures.full_text) if part)

    def show_changes(self, files: int, undone: int = 0) -> None:
        """Show how many files are changed, or if none is, that `undone` ones were; nothing for none."""
        text = trn("{n} file changed", "{n} files changed", files)
        if not files:
            text = trn("Changes of {n} file undone", "Changes of {n} files undone", undone)
        self._changes.setText(text)
        self._changes.setAccessibleName(text)
        self._changes.setVisible(files + undone > 0)

    def show_reminder(self, text: str) -> None:
        """Show this text instead of the activity, until it is empty."""
        self._reminder = text
        self._show_activity()

    def show_task(
        self, task: Task | None, who: str = "", *, writing: str = tr("Working"), told_at: float | None = None
    ) -> None:
        """`who` is the name of the agent, if there are several; `writing` says what its model does.

        `told_at` is when the engine told how long it has worked, None for now.
        """
        self._told_at = time.monotonic() if told_at is None else told_at
        self._task = task
        self.mode.show_task(task)
        if task is None:
            self._full_activity = self._reminder = ""
            self._show_activity()
            self._try_now.hide()
            self._pause.hide()
            self._figures.set_text("")
            self._run_clock()
            return
        activity = task_activity(task, writing)
        self._full_activity = f"{who}: {activity}" if who else activity
        self._context.show_task(task)
        self._show_activity()
        self._show_pause(task)
        self._try_now.setVisible(bool(time_left(task)) and not task.activity.stopping)
        self._figures.set_text(self._figures_text(task))
        self._run_clock()

    def _show_pause(self, task: Task) -> None:
        """An interrupted task is resumed by its banner. While it waits for a person there is nothing to pause."""
        resumes = is_paused(task) and task.activity.status != "interrupted"
        self._pause.setVisible(resumes or (can_pause(task) and task.activity.status != "waiting_user"))
        self._pause.setText(tr("Resume") if resumes else tr("Pause"))
        self._pause.setAccessibleName(self._pause.text())

    def _show_activity(self) -> None:
        self._activity.set_text(self._reminder or self._full_activity)
        self._figures.setVisible(not self._reminder)
        # If the space is too small for everything, the figures shrink first.
        self._activity.setMinimumWidth(min(self._activity.sizeHint().width(), self._most_activity))
        self._activity.set_tone("waiting" if self._reminder else _TONES[dot_state(self._task)])
        if self._reminder:
            announce(self, self._reminder)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._on_tick()
        self._run_clock()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._run_clock()

    def _run_clock(self) -> None:
        task = self._task
        counts = task is not None and (_is_timed(task) or bool(time_left(task)))
        running = counts and self.isVisible()
        if running == self._clock.isActive():
            return
        if running:
            self._clock.start()
        else:
            self._clock.stop()

    def _on_tick(self) -> None:
        if self._task is not None:
            self._figures.set_text(self._figures_text(self._task))

    def _figures_text(self, task: Task) -> str:
        """Unknown figures are omitted. The popover of the context has the others."""
        since = time.monotonic() - self._told_at if _is_timed(task) else 0.0
        worked = elapsed(task) if task.outcome.ended_at is not None else task.activity.worked_s + since
        spent = duration(worked) if worked else ""
        return " ".join(f"· {part}" for part in (time_left(task), spent, money(task.total_usage)) if part)


def _is_timed(task: Task) -> bool:
    """False while it waits for a person or for a provider: then its working time stands still."""
    return task.outcome.ended_at is None and task.activity.status not in ("waiting_user", "paused", "interrupted")
