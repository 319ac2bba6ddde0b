"""The status of a task as a dot: running pulses, waiting is a ring, ended is filled. Always paired with text."""

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHideEvent, QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from errand.client.texts.tasks import is_unfinished, neutral_text
from errand.protocol.tasks.task import Task
from errand.text.translation import tr
from errand.window.theme.style import set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.pulse import PulseTimer

DotState = Literal["idle", "working", "waiting", "held", "paused", "done", "ended", "unfinished", "stopped", "failed"]

STATE_LABELS: dict[DotState, str] = {
    "idle": tr("Idle"),
    "working": tr("Working"),
    "waiting": tr("Waiting for you"),
    "held": tr("Waiting for a rate limit"),
    "paused": tr("Paused"),
    "done": tr("Done"),
    "ended": tr("Ended"),
    "unfinished": tr("Ended, not finished"),
    "stopped": tr("Stopped"),
    "failed": tr("Failed"),
}
_COLOURS: dict[DotState, str] = {
    "idle": "outline",
    "working": "accent",
    "waiting": "waiting_mark",
    "held": "waiting_mark",
    "paused": "muted",
    "done": "done_mark",
    "ended": "muted",
    "unfinished": "waiting_mark",
    "stopped": "muted",
    "failed": "failed_mark",
}
_RINGS: frozenset[DotState] = frozenset({"waiting", "held", "paused", "unfinished", "stopped"})
# From the centre to the end of each hand, in pixels.
_RING_WIDTHS = (QPointF(0, -2.5), QPointF(2, 0))
_SIDE = 14


def dot_state(task: Task | None) -> DotState:
    """Return the dot state for the newest task of a conversation."""
    if task is None:
        return "idle"
    if task.activity.retry_at is not None and task.outcome.ended_at is None:
        return "held"
    match task.activity.status:
        case "running" | "thinking" | "tool_executing":
            return "working"
        case "waiting_user":
            return "waiting"
        case "paused" | "interrupted":
            return "paused"
        case "completed":
            return "unfinished" if is_unfinished(task) else "ended" if neutral_text(task) else "done"
        case "cancelled":
            return "stopped"
        case "error":
            return "failed"


def shown_state(state: DotState, unread: int) -> DotState:
    """Return the state that tabs and lists mark: running, waiting, and failed tasks until somebody has looked."""
    if state in ("working", "waiting", "held", "paused"):
        return state
    return state if unread and state in ("unfinished", "failed") else "idle"


class StatusDotView(QWidget):
    """14 px square. Pulses only while it is visible and the task runs."""

    def __init__(self, theme: Theme, pulse: PulseTimer) -> None:
        super().__init__()
        self._theme = theme
        self._pulse = pulse
        self._state: DotState = "idle"
        self._stop_pulse: Callable[[], None] | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._name()
        theme.changed.connect(self.update)

    @property
    def state(self) -> DotState:
        return self._state

    def set_state(self, state: DotState) -> None:
        self._state = state
        self._name()
        self._follow()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(_SIDE, _SIDE)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._follow()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._follow()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        paint_status(painter, QRectF(self.rect()), self._state, self._theme, self._pulse.strength)

    def _name(self) -> None:
        self.setAccessibleName(STATE_LABELS[self._state])
        set_tool_tip(self, STATE_LABELS[self._state])

    def _follow(self) -> None:
        should_pulse = self._state == "working" and self.isVisible()
        if should_pulse and self._stop_pulse is None:
            self._stop_pulse = self._pulse.add(self)
        elif not should_pulse and self._stop_pulse is not None:
            self._stop_pulse()
            self._stop_pulse = None


def paint_status(painter: QPainter, square: QRectF, state: DotState, theme: Theme, strength: float) -> None:
    """Draw the dot centred in `square`: for delegates and tabs. `strength` is the pulse's."""
    colour = QColor(theme.colour(_COLOURS[state]))
    if state == "working":
        colour.setAlphaF(strength)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if state in _RINGS:
        painter.setPen(QPen(colour, 1.5 if state == "held" else 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        radius = 5.0 if state == "held" else 3.5
    else:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        radius = 4.0
    middle = square.center()
    painter.drawEllipse(middle, radius, radius)
    if state == "held":
        painter.drawPolyline([middle + _RING_WIDTHS[0], middle, middle + _RING_WIDTHS[1]])
