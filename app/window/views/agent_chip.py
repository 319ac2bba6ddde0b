"""One agent of a conversation in the row above the composer: its colour, its name, and whether it works or waits."""

from PySide6.QtCore import QPoint, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QSizePolicy

from app.protocol.agents import Agent
from app.protocol.tasks import Task
from app.window.stores.tasks import is_working
from app.window.theme.look import set_look, set_tip
from app.window.theme.theme import Theme
from app.window.widgets.person_dot import paint_person
from app.window.widgets.state_dot import state_of

_DOT, _LONGEST = 14, 24


class AgentChip(QPushButton):
    """A click looks at the agent; `menu_asked` gives the place of the menu of what else can be done with it."""

    menu_asked = Signal(QPoint)

    def __init__(self, theme: Theme, agent: Agent) -> None:
        super().__init__()
        self._theme = theme
        self.agent = agent
        self._state = ""
        self.setCheckable(True)
        self.setAutoDefault(False)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the keyboard where a person writes
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        set_look(self, "look", "person")
        theme.changed.connect(self.update)

    def show_agent(self, agent: Agent, task: Task | None, *, is_shown: bool) -> None:
        """As it is now; `task` is its newest."""
        self.agent = agent
        self._state = _word(task)
        self.setChecked(is_shown)
        name = agent.name if len(agent.name) <= _LONGEST else f"{agent.name[: _LONGEST - 1]}…"
        self.setText(f"{name} · {self._state}" if self._state else name)
        parts = (agent.name, self._state, agent.model, "looked at" if is_shown else "")
        self.setAccessibleName(", ".join(part for part in parts if part))
        set_tip(self, _tip(agent))
        self.updateGeometry()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_asked.emit(event.globalPos())

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        middle = (self.height() - _DOT) / 2
        square = QRectF(self._theme.tokens.space_close, middle, _DOT, _DOT)
        paint_person(painter, square, self.agent.color, self._theme)
        if self._state == "waits for you":
            painter.setPen(QPen(QColor(self._theme.tokens.waiting_mark), 2))
            painter.setBrush(QColor(0, 0, 0, 0))
            painter.drawEllipse(square.center(), 6, 6)


def _word(task: Task | None) -> str:
    """Nothing is said of one that rests."""
    if task is None or not is_working(task):
        return ""
    match state_of(task):
        case "waiting":
            return "waits for you"
        case "paused":
            return "paused"
        case _:
            return "stopping" if task.stopping else "working"


def _tip(agent: Agent) -> str:
    model = f", {agent.model}" if agent.model else ""
    whose = " It answers on a branch of its own." if agent.beside is not None else ""
    return f"Look at the branch of {agent.name}{model}, and write to it.{whose}"
