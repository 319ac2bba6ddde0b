"""One side of a comparison: who wrote it, what it took, its text, and the button that goes on with it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.protocol.agents import Agent
from app.window.stores.agents import AgentStore
from app.window.stores.compared import Compared
from app.window.stores.compared_side import ComparedSide
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.transcript.view import TranscriptView
from app.window.views.compared_actions import ComparedActions
from app.window.widgets.elided_label import ElidedLabel
from app.window.widgets.text_label import TextLabel

_THIS = "This branch"
_EMPTY = "Nothing was written here: this branch ends where the other one goes on."


class ComparedView(QWidget):
    """`turned` has the `Compared` that a person wants to see here instead; `chosen` when they go on with this one."""

    turned = Signal(object)
    chosen = Signal()

    def __init__(
        self, name: str, side: ComparedSide, agents: AgentStore, theme: Theme, actions: ComparedActions
    ) -> None:
        super().__init__()
        self.side = side
        self._agents = agents
        self._theme = theme
        self._name = name
        self._entries: list[tuple[str, str | None]] = []
        self.who = QComboBox()
        self.transcript = TranscriptView(side, theme, actions)
        self.go_on = push_button("Go on with this one")
        self._models = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._figures = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._note = TextLabel(theme, _EMPTY, tone="muted", wrap=True)
        self._layers = QStackedWidget()
        self._lay_out()
        self.who.activated.connect(self._on_turned)
        self.go_on.clicked.connect(self.chosen)
        side.told.connect(self.show_side)
        agents.changed.connect(self.show_agents)
        self.show_agents()

    @property
    def words(self) -> str:
        """What its head says."""
        return " · ".join(part for part in (self._models.whole_text, self._figures.whole_text) if part)

    def show_side(self) -> None:
        self._models.set_text(", ".join(self.side.models))
        self._figures.set_text(self.side.figures)
        self._layers.setCurrentWidget(self.transcript if self.side.count() else self._note)

    def show_agents(self) -> None:
        """Whose branches there are to choose from."""
        entries = [(_title(agent), agent.id) for agent in self._agents.all if agent.head_id is not None]
        own = [(_THIS, None)] if self.side.compared.agent_id is None else []
        if self._entries != [*own, *entries]:  # else a list that is open would lose what is marked in it
            self._entries = [*own, *entries]
            self.who.clear()
            for title, agent_id in self._entries:
                self.who.addItem(title, agent_id)
        self.who.setCurrentIndex(max(0, self.who.findData(self.side.compared.agent_id)))
        self.who.setEnabled(self.who.count() > 1)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.who.setAccessibleName(f"{self._name}: whose branch")
        self.who.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.transcript.setAccessibleName(f"{self._name} branch")
        self.go_on.setAccessibleName(f"Go on with the {self._name.lower()} one")
        self._note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._note.setMargin(tokens.space_far)
        self._layers.addWidget(self.transcript)
        self._layers.addWidget(self._note)
        head = QHBoxLayout()
        head.setSpacing(tokens.space_close)
        head.addWidget(self.who, 1)
        head.addWidget(self.go_on)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_normal, tokens.space_normal, tokens.space_normal, 0)
        column.setSpacing(tokens.space_tight)
        column.addLayout(head)
        column.addWidget(self._models)
        column.addWidget(self._figures)
        column.addWidget(self._layers, 1)

    def _on_turned(self) -> None:
        agent_id: object = self.who.currentData()
        agent = self._agents.get(agent_id) if isinstance(agent_id, str) else None
        if agent is not None and agent.head_id is not None and agent.id != self.side.compared.agent_id:
            self.turned.emit(Compared(agent.head_id, agent.id))


def _title(agent: Agent) -> str:
    return f"{agent.name} · {agent.model}" if agent.model else agent.name
