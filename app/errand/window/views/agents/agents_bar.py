"""The agents of a conversation above the composer: chips, the selected one, turn order."""

from functools import partial

from PySide6.QtCore import QPoint, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QMenu, QPushButton, QSizePolicy, QWidget

from errand.client.conversation.branch import ComparedBranch
from errand.client.conversation.task_states import is_working
from errand.client.texts.turns import turn_rule_label
from errand.protocol.agents import Agent
from errand.protocol.tasks.task import Task
from errand.text.translation import tr
from errand.window.stores.catalog import ModelStore
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.stores import Stores
from errand.window.theme.style import pressed_by_enter, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.agent_dot import paint_agent_dot
from errand.window.widgets.boxes import fill, set_hbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.containers import FlowLayout
from errand.window.widgets.labels import TextLabel
from errand.window.widgets.status_dot import dot_state

_DOT, _MAX_NAME_LENGTH = 14, 24
_NO_CONVERSATION_YET = tr("Send a message first, then other agents can join.")


class AgentChipView(QPushButton):
    """A click selects the agent; `menu_requested` gives the position for its context menu."""

    menu_requested = Signal(QPoint)

    def __init__(self, theme: Theme, agent: Agent) -> None:
        super().__init__()
        self._theme = theme
        self.agent = agent
        self._state = ""
        self.setCheckable(True)
        self.setAutoDefault(False)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click keeps the focus in the input
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        set_style(self, "look", "person")
        theme.changed.connect(self.update)

    def show_agent(self, agent: Agent, task: Task | None, *, is_shown: bool) -> None:
        """Show the current state; `task` is the agent's newest task."""
        self.agent = agent
        self._waits = task is not None and is_working(task) and dot_state(task) == "waiting"
        self._state = _status_label(task)
        self.setChecked(is_shown)
        name = agent.name if len(agent.name) <= _MAX_NAME_LENGTH else f"{agent.name[: _MAX_NAME_LENGTH - 1]}…"
        self.setText(f"{name} · {self._state}" if self._state else name)
        parts = (agent.name, self._state, agent.model, tr("branch shown") if is_shown else "")
        self.setAccessibleName(", ".join(part for part in parts if part))
        set_tool_tip(self, _tool_tip(agent))
        self.updateGeometry()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by_enter(self, event):
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_requested.emit(event.globalPos())

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        middle = (self.height() - _DOT) / 2
        square = QRectF(self._theme.tokens.space_close, middle, _DOT, _DOT)
        paint_agent_dot(painter, square, self.agent.color, self._theme)
        if self._waits:
            painter.setPen(QPen(QColor(self._theme.tokens.waiting_mark), 2))
            painter.setBrush(QColor(0, 0, 0, 0))
            painter.drawEllipse(square.center(), 6, 6)


def _status_label(task: Task | None) -> str:
    """Empty for an idle agent."""
    if task is None or not is_working(task):
        return ""
    match dot_state(task):
        case "waiting":
            return tr("waits for you")
        case "paused":
            return tr("paused")
        case _:
            return tr("stopping") if task.activity.stopping else tr("working")


def _tool_tip(agent: Agent) -> str:
    name = f"{agent.name}, {agent.model}" if agent.model else agent.name
    shows = tr("Look at the branch of {agent}, and write to it.").format(agent=name)
    return f"{shows} {tr('It answers on a branch of its own.')}" if agent.beside is not None else shows


class AgentsBarView(QWidget):
    """Hidden while there is only one agent. The owner shows the branches of `compare_requested`."""

    compare_requested = Signal(object)

    def __init__(self, store: ConversationStore, stores: Stores, models: ModelStore, theme: Theme) -> None:
        super().__init__()
        self._store = store
        self._tasks = stores.tasks
        self._personalities = stores.personalities
        self._models = models
        self._theme = theme
        self._chips: dict[str, AgentChipView] = {}
        self.turns = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._add = IconButton(theme, "plus", tr("Add agent"))
        self._more = IconButton(theme, "users", tr("Agents and turns"))
        tokens = theme.tokens
        self._wrap = FlowLayout(tokens.space_tight)
        set_hbox(
            self,
            fill(self._wrap),
            self.turns,
            self._add,
            self._more,
            spacing=tokens.space_tight,
            margins=(0, 0, tokens.space_close, 0),
        )
        self.setAccessibleName(tr("Agents"))
        self._add.clicked.connect(self.add_agent)
        self._more.clicked.connect(self._on_more_clicked)
        self.show_agents()

    @property
    def chips(self) -> tuple[AgentChipView, ...]:
        return tuple(self._chips[agent.id] for agent in self._bar_agents())

    @property
    def mentionable(self) -> tuple[Agent, ...]:
        """The agents that a message can mention."""
        return tuple(agent for agent in self._store.agents.all if agent.beside is None)

    def add_agent(self) -> None:
        """Open the dialog that adds an agent."""
        from errand.window.views.agents.dialogs import AddAgentDialog  # most conversations have one agent

        if self._store.conversation_id is None:
            self._store.failed.emit(_NO_CONVERSATION_YET)
            return
        dialog = AddAgentDialog(self._theme, self._personalities.all, self._models.ready, self.window())
        dialog.chosen.connect(partial(self._store.agents.add, self._store.conversation_id))
        dialog.open()

    def show_agents(self) -> None:
        """The participating agents, plus other agents that are running or selected."""
        agents = self._bar_agents()
        if [agent.id for agent in agents] != list(self._chips):
            self._make_chips(agents)
        shown_agent = self._store.agents.shown
        for agent in agents:
            self._chips[agent.id].show_agent(agent, self._tasks.of_agent(agent.id), is_shown=agent == shown_agent)
        self.turns.setText(turn_rule_label(self._store.agents.turns, self._store.branch.replies_since_user()))
        self.turns.setVisible(len(agents) > 1 and bool(self.turns.text()))
        self.setVisible(len(agents) > 1)

    def _bar_agents(self) -> tuple[Agent, ...]:
        shown_agent = self._store.agents.shown
        return tuple(
            agent
            for agent in self._store.agents.all
            if agent.beside is None or agent == shown_agent or self._working_task(agent)
        )

    def _working_task(self, agent: Agent) -> bool:
        task = self._tasks.of_agent(agent.id)
        return task is not None and is_working(task)

    def _make_chips(self, agents: tuple[Agent, ...]) -> None:
        focused = next((agent_id for agent_id, chip in self._chips.items() if chip.hasFocus()), "")
        for chip in self._chips.values():
            self._wrap.removeWidget(chip)
            chip.hide()
            chip.deleteLater()
        self._chips = {agent.id: AgentChipView(self._theme, agent) for agent in agents}
        for agent_id, chip in self._chips.items():
            self._wrap.addWidget(chip)
            chip.clicked.connect(partial(self._on_chip_clicked, agent_id))
            chip.menu_requested.connect(partial(self._on_menu_requested, agent_id))
        if focused in self._chips:
            self._chips[focused].setFocus()

    def _on_chip_clicked(self, agent_id: str) -> None:
        self._store.agents.show_agent(agent_id)
        self.show_agents()

    def _on_compare_requested(self, agent_id: str) -> None:
        agent, shown_agent = self._store.agents.get(agent_id), self._store.agents.shown
        if agent is not None and shown_agent is not None and agent.head_id and shown_agent.head_id:
            self.compare_requested.emit(
                (ComparedBranch(shown_agent.head_id, shown_agent.id), ComparedBranch(agent.head_id, agent.id))
            )

    def _on_menu_requested(self, agent_id: str, position: QPoint) -> None:
        agent = self._store.agents.get(agent_id)
        if agent is not None:
            menu = QMenu(self)
            self._fill_menu(menu, agent)
            menu.aboutToHide.connect(menu.deleteLater)
            menu.popup(position)

    def _on_more_clicked(self) -> None:
        menu = QMenu(self)
        menu.addAction(self._theme.icon("refresh-cw"), tr("Turns…"), self.set_turns)
        menu.addAction(self._theme.icon("plus"), tr("Add agent…"), self.add_agent)
        menu.addSeparator()
        for agent in self._bar_agents():
            self._fill_menu(menu.addMenu(agent.name.replace("&", "&&")), agent)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self._more.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    def set_turns(self) -> None:
        """Open the dialog for the turn order."""
        from errand.window.views.agents.dialogs import TurnOrderDialog

        dialog = TurnOrderDialog(self._theme, self._store.agents.turns, self.mentionable, self.window())
        dialog.chosen.connect(partial(self._store.agents.set_turns, self._store.conversation_id or ""))
        dialog.open()

    def remove_agent(self, agent: Agent) -> None:
        """Remove an agent after a confirmation."""
        from errand.window.views.agents.dialogs import RemoveAgentDialog

        dialog = RemoveAgentDialog(agent.name, self.window())
        dialog.accepted.connect(partial(self._store.agents.remove, agent.id))
        dialog.open()

    def _fill_menu(self, menu: QMenu, agent: Agent) -> None:
        """Fill the menu of one agent."""
        is_shown, works = agent == self._store.agents.shown, self._working_task(agent)
        show = menu.addAction(self._theme.icon("corner-down-right"), tr("Show branch"))
        show.triggered.connect(partial(self._on_chip_clicked, agent.id))
        show.setEnabled(not is_shown)
        switch = menu.addAction(self._theme.icon("git-branch"), tr("Move here"))
        switch.triggered.connect(partial(self._store.branches.bring_agent, agent.id))
        switch.setEnabled(not is_shown and not works)
        compare = menu.addAction(self._theme.icon("columns-2"), tr("Compare with current branch"))
        compare.triggered.connect(partial(self._on_compare_requested, agent.id))
        compare.setEnabled(not is_shown)
        remove = menu.addAction(self._theme.icon("x"), tr("Remove…"))
        remove.triggered.connect(partial(self.remove_agent, agent))
        remove.setEnabled(not works)
