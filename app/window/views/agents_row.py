"""The agents of a conversation of several: whom a person looks at and writes to, and how they take turns."""

from functools import partial

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QHBoxLayout, QMenu, QWidget

from app.protocol.agents import Agent
from app.window.stores.compared import Compared
from app.window.stores.conversation import ConversationStore
from app.window.stores.tasks import TaskStore, is_working
from app.window.theme.theme import Theme
from app.window.views.agent_chip import AgentChip
from app.window.views.turn_words import turns_in_short
from app.window.widgets.icon_button import IconButton
from app.window.widgets.text_label import TextLabel
from app.window.widgets.wrap_layout import WrapLayout


class AgentsRow(QWidget):
    """Away while there is one agent alone. What is asked for here is done by who holds it."""

    add_asked = Signal()
    turns_asked = Signal()
    remove_asked = Signal(object)
    compare_asked = Signal(object, object)

    def __init__(self, store: ConversationStore, tasks: TaskStore, theme: Theme) -> None:
        super().__init__()
        self._store = store
        self._tasks = tasks
        self._theme = theme
        self._chips: dict[str, AgentChip] = {}
        self._turns = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._add = IconButton(theme, "plus", "Add an agent")
        self._more = IconButton(theme, "users", "Agents and turns")
        tokens = theme.tokens
        self._wrap = WrapLayout(tokens.space_tight)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, tokens.space_close, 0)
        row.setSpacing(tokens.space_tight)
        row.addLayout(self._wrap, 1)
        for widget in (self._turns, self._add, self._more):
            row.addWidget(widget)
        self.setAccessibleName("Agents")
        self._add.clicked.connect(self.add_asked)
        self._more.clicked.connect(self._on_more_clicked)
        self.show_agents()

    @property
    def chips(self) -> tuple[AgentChip, ...]:
        return tuple(self._chips[agent.id] for agent in self._seen())

    @property
    def turns(self) -> str:
        """The rule, as it is told; nothing for the usual one."""
        return self._turns.text()

    def show_agents(self) -> None:
        """Those that take part, and of those beside them the ones at work and the one that is looked at."""
        agents = self._seen()
        if [agent.id for agent in agents] != list(self._chips):
            self._make_chips(agents)
        shown = self._store.agents.shown
        for agent in agents:
            self._chips[agent.id].show_agent(agent, self._tasks.of_agent(agent.id), is_shown=agent == shown)
        self._turns.setText(turns_in_short(self._store.agents.turns, self._store.spoken))
        self._turns.setVisible(len(agents) > 1 and bool(self._turns.text()))
        self.setVisible(len(agents) > 1)

    def _seen(self) -> tuple[Agent, ...]:
        shown = self._store.agents.shown
        return tuple(
            agent for agent in self._store.agents.all if agent.beside is None or agent == shown or self._works(agent)
        )

    def _works(self, agent: Agent) -> bool:
        task = self._tasks.of_agent(agent.id)
        return task is not None and is_working(task)

    def _make_chips(self, agents: tuple[Agent, ...]) -> None:
        focused = next((agent_id for agent_id, chip in self._chips.items() if chip.hasFocus()), "")
        for chip in self._chips.values():
            self._wrap.removeWidget(chip)
            chip.hide()
            chip.deleteLater()
        self._chips = {agent.id: AgentChip(self._theme, agent) for agent in agents}
        for agent_id, chip in self._chips.items():
            self._wrap.addWidget(chip)
            chip.clicked.connect(partial(self._on_chip_clicked, agent_id))
            chip.menu_asked.connect(partial(self._on_menu_asked, agent_id))
        if focused in self._chips:
            self._chips[focused].setFocus()

    def _on_chip_clicked(self, agent_id: str) -> None:
        self._store.agents.look_at(agent_id)
        self.show_agents()

    def _on_compare_asked(self, agent_id: str) -> None:
        agent, shown = self._store.agents.get(agent_id), self._store.agents.shown
        if agent is not None and shown is not None and agent.head_id and shown.head_id:
            self.compare_asked.emit(Compared(shown.head_id, shown.id), Compared(agent.head_id, agent.id))

    def _on_menu_asked(self, agent_id: str, place: QPoint) -> None:
        agent = self._store.agents.get(agent_id)
        if agent is not None:
            menu = QMenu(self)
            self._fill(menu, agent)
            menu.aboutToHide.connect(menu.deleteLater)
            menu.popup(place)

    def _on_more_clicked(self) -> None:
        menu = QMenu(self)
        menu.addAction(self._theme.icon("refresh-cw"), "Turns…", self.turns_asked.emit)
        menu.addAction(self._theme.icon("plus"), "Add an agent…", self.add_asked.emit)
        menu.addSeparator()
        for agent in self._seen():
            self._fill(menu.addMenu(agent.name.replace("&", "&&")), agent)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self._more.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    def _fill(self, menu: QMenu, agent: Agent) -> None:
        """What can be done with one agent."""
        is_shown, works = agent == self._store.agents.shown, self._works(agent)
        look = menu.addAction(self._theme.icon("corner-down-right"), "Look at its branch")
        look.triggered.connect(partial(self._on_chip_clicked, agent.id))
        look.setEnabled(not is_shown)
        bring = menu.addAction(self._theme.icon("git-branch"), "Bring it here")
        bring.triggered.connect(partial(self._store.bring, agent.id))
        bring.setEnabled(not is_shown and not works)
        compare = menu.addAction(self._theme.icon("columns-2"), "Compare with the branch in front")
        compare.triggered.connect(partial(self._on_compare_asked, agent.id))
        compare.setEnabled(not is_shown)
        remove = menu.addAction(self._theme.icon("x"), "Remove…")
        remove.triggered.connect(partial(self.remove_asked.emit, agent))
        remove.setEnabled(not works)
