"""One line of the inbox or of what runs: state, title and what it is about; opens its conversation."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout

from app.window.theme.theme import Theme
from app.window.widgets.elided_label import ElidedLabel
from app.window.widgets.icon_button import IconButton
from app.window.widgets.pulse import Pulse
from app.window.widgets.state_dot import WORDS, State, StateDot

_OPENERS = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)


class InboxRow(QFrame):
    """`opened` at a click or Enter; `stopped` at its stop button, which only a running task has."""

    opened = Signal()
    stopped = Signal()

    def __init__(self, theme: Theme, pulse: Pulse, *, can_stop: bool) -> None:
        super().__init__()
        tokens = theme.tokens
        self.setObjectName("row")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._dot = StateDot(theme, pulse)
        self._title = ElidedLabel(theme)
        self._detail = ElidedLabel(theme, size=tokens.size_small, tone="muted")
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self._title)
        words.addWidget(self._detail)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_close, tokens.space_tight, tokens.space_tight, tokens.space_tight)
        row.setSpacing(tokens.space_close)
        row.addWidget(self._dot)
        row.addLayout(words, 1)
        self._stop: IconButton | None = None
        if can_stop:
            self._stop = IconButton(theme, "square", "Stop")
            self._stop.clicked.connect(self.stopped)
            row.addWidget(self._stop)

    @property
    def text(self) -> str:
        return f"{self._title.whole_text}: {self._detail.whole_text}"

    def show_entry(self, state: State, title: str, detail: str, *, stopping: bool = False) -> None:
        self._dot.set_state(state)
        self._title.set_text(title)
        self._detail.set_text(detail)
        self.setAccessibleName(f"{title}, {WORDS[state].lower()}, {detail}")
        if self._stop is not None:
            self._stop.setEnabled(not stopping)
            self._stop.setAccessibleName(f"Stop {title}")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _OPENERS:
            self.opened.emit()
        else:
            super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.opened.emit()
