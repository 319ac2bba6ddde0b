"""What stands left of a tab's title: the state of its task and how much in it is new."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.window.theme.theme import Theme
from app.window.widgets.badge import Badge
from app.window.widgets.pulse import Pulse
from app.window.widgets.state_dot import State, StateDot


class TabMark(QWidget):
    """The badge takes the dot's place while something is new, unless the task works or waits."""

    def __init__(self, theme: Theme, pulse: Pulse) -> None:
        super().__init__()
        self._dot = StateDot(theme, pulse)
        self._badge = Badge(theme, "new")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.tokens.space_tight)
        row.addWidget(self._dot)
        row.addWidget(self._badge)

    def show_state(self, state: State, unread: int) -> None:
        self._dot.set_state(state)
        self._dot.setVisible(state != "idle")
        self._badge.set_count(unread)
        self.adjustSize()
