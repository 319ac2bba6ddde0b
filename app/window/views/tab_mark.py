"""What stands left of a tab's title: the state of its task and how much in it is new."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.window.theme.theme import Theme
from app.window.widgets.badge import Badge
from app.window.widgets.pulse import Pulse
from app.window.widgets.state_dot import State, StateDot


class TabMark(QWidget):
    """Takes no room where there is nothing to say."""

    def __init__(self, theme: Theme, pulse: Pulse) -> None:
        super().__init__()
        self._dot = StateDot(theme, pulse)
        self._badge = Badge(theme, "new")
        self._space = theme.tokens.space_close
        self._row = QHBoxLayout(self)
        self._row.setSpacing(theme.tokens.space_tight)
        self._row.addWidget(self._dot)
        self._row.addWidget(self._badge)

    def show_state(self, state: State, unread: int) -> None:
        self._dot.set_state(state)
        self._dot.setVisible(state != "idle")
        self._badge.set_count(unread)
        self._row.setContentsMargins(self._space if state != "idle" or unread else 0, 0, 0, 0)
        self.adjustSize()
