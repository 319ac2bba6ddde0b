"""Two branches side by side from their fork on: text, usage, and the button that continues with one."""

from functools import partial

from PySide6.QtCore import QObject, Qt, Signal, SignalInstance
from PySide6.QtGui import QClipboard
from PySide6.QtWidgets import QComboBox, QDialog, QHBoxLayout, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from errand.protocol.agents import Agent
from errand.protocol.conversations import Node
from errand.window.stores.catalog import ModelStore
from errand.window.stores.conversation.agents import AgentStore
from errand.window.stores.conversation.branch import ComparedBranch
from errand.window.stores.conversation.comparison import ComparedBranchStore, ComparisonStore
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.transcript.view import TranscriptView
from errand.window.views.shared.row_actions import ConversationRowActions
from errand.window.widgets.banner import BannerView
from errand.window.widgets.dialogs import resize_on_screen
from errand.window.widgets.labels import ElidedLabel, TextLabel

_WHY = "Go on with one of the two first: then it can be changed in the conversation."

_THIS = "This branch"
_EMPTY = "Nothing was written here: this branch ends where the other one goes on."

_READING = "Reading both branches…"
_APART = "They have no beginning in common."


class ReadOnlyBranchActions(QObject):
    """Branch actions of a read-only view: each one only emits `refused` with the reason."""

    refused = Signal(str)
    _lock_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.drafts: dict[str, str] = {}

    @property
    def lock_changed(self) -> SignalInstance:
        return self._lock_changed

    @property
    def locked(self) -> str:
        return _WHY

    def switch(self, node_id: str) -> None:
        self.refused.emit(_WHY)

    def fork(self, node_id: str) -> None:
        self.refused.emit(_WHY)

    def retry(self, node_id: str, model: str | None = None) -> None:
        self.refused.emit(_WHY)

    def edit(self, node_id: str) -> None:
        self.refused.emit(_WHY)

    def end_edit(self) -> None:
        """Nothing to do: no message can be edited here."""

    def resend(self, node: Node, text: str) -> None:
        self.refused.emit(_WHY)


class NoChangeActions(QObject):
    """A comparison does not review files: its panel is beside the conversation."""

    _changed = Signal()

    @property
    def changed(self) -> SignalInstance:
        return self._changed

    def count(self, task_id: str) -> int:
        return 0

    def review(self, task_id: str, name: str = "") -> None:
        """Nothing to do."""


class ComparisonActions:
    """Row actions of a compared branch; `conversation` handles those that do not concern branches."""

    def __init__(self, conversation: ConversationRowActions) -> None:
        self.branches = ReadOnlyBranchActions()
        self.context = conversation.context
        self.changes = conversation.changes
        self.open_link = conversation.open_link
        self.copy = conversation.copy
        self.copy_picture = conversation.copy_picture
        self.answer = conversation.answer
        self.open_source = conversation.open_source
        self.forget = conversation.forget

    def models(self) -> tuple[str, ...]:
        return ()

    def load_older(self) -> None:
        """Nothing to do: both branches are fully loaded."""

    def open_agent(self, agent_id: str) -> None:
        """Nothing to do: a comparison shows its two branches."""

    def stop_task(self, task_id: str) -> None:
        """Nothing to do: a comparison changes nothing."""


class ComparedBranchView(QWidget):
    """One side of the comparison.

    Emits `agent_chosen` with another branch to show here, and `chosen` to continue with this one.
    """

    agent_chosen = Signal(object)
    chosen = Signal()

    def __init__(
        self, name: str, side: ComparedBranchStore, agents: AgentStore, theme: Theme, actions: ComparisonActions
    ) -> None:
        super().__init__()
        self.side = side
        self._agents = agents
        self._theme = theme
        self._name = name
        self._entries: list[tuple[str, str | None]] = []
        self.who = QComboBox()
        self.transcript = TranscriptView(side, theme, actions)
        self.continue_button = push_button("Go on with this one")
        self._models = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._figures = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        self._note = TextLabel(theme, _EMPTY, tone="muted", wrap=True)
        self._stack = QStackedWidget()
        self._lay_out()
        self.who.activated.connect(self._on_agent_chosen)
        self.continue_button.clicked.connect(self.chosen)
        side.figures_changed.connect(self.show_side)
        agents.changed.connect(self.show_agents)
        self.show_agents()

    @property
    def texts(self) -> str:
        """The text of the header."""
        return " · ".join(part for part in (self._models.full_text, self._figures.full_text) if part)

    def show_side(self) -> None:
        self._models.set_text(", ".join(self.side.models))
        self._figures.set_text(self.side.figures)
        self._stack.setCurrentWidget(self.transcript if self.side.count() else self._note)

    def show_agents(self) -> None:
        """Update the list of agents whose branches can be shown."""
        entries = [(_title(agent), agent.id) for agent in self._agents.all if agent.head_id is not None]
        own = [(_THIS, None)] if self.side.compared.agent_id is None else []
        if self._entries != [*own, *entries]:  # otherwise an open list would lose its selection
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
        self.continue_button.setAccessibleName(f"Go on with the {self._name.lower()} one")
        self._note.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._note.setMargin(tokens.space_far)
        self._stack.addWidget(self.transcript)
        self._stack.addWidget(self._note)
        head = QHBoxLayout()
        head.setSpacing(tokens.space_close)
        head.addWidget(self.who, 1)
        head.addWidget(self.continue_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_normal, tokens.space_normal, tokens.space_normal, 0)
        column.setSpacing(tokens.space_tight)
        column.addLayout(head)
        column.addWidget(self._models)
        column.addWidget(self._figures)
        column.addWidget(self._stack, 1)

    def _on_agent_chosen(self) -> None:
        agent_id: object = self.who.currentData()
        agent = self._agents.get(agent_id) if isinstance(agent_id, str) else None
        if agent is not None and agent.head_id is not None and agent.id != self.side.compared.agent_id:
            self.agent_chosen.emit(ComparedBranch(agent.head_id, agent.id))


def _title(agent: Agent) -> str:
    return f"{agent.name} · {agent.model}" if agent.model else agent.name


class ComparisonDialog(QDialog):
    """A separate window, so that the conversation stays usable. Esc closes it."""

    def __init__(
        self, comparison: ComparisonStore, models: ModelStore, theme: Theme, clipboard: QClipboard, parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"{comparison.store.title} — two branches")
        self._comparison = comparison
        self._theme = theme
        self._common_history = ElidedLabel(theme, _READING, tone="muted")
        self._error_banner = BannerView(theme)
        row_actions = ConversationRowActions(comparison.store, models, clipboard, self, NoChangeActions(self))
        self._actions = ComparisonActions(row_actions)
        agents = comparison.store.agents
        self.views = (
            ComparedBranchView("Left", comparison.sides[0], agents, theme, self._actions),
            ComparedBranchView("Right", comparison.sides[1], agents, theme, self._actions),
        )
        self._lay_out()
        self._connect()
        comparison.load()

    def done(self, result: int) -> None:
        self._comparison.close()
        super().done(result)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        resize_on_screen(self, 2 * tokens.column, tokens.column)
        sides = QSplitter(Qt.Orientation.Horizontal)
        sides.setChildrenCollapsible(False)
        for view in self.views:
            sides.addWidget(view)
        sides.setSizes([self.width() // 2, self.width() // 2])
        head = QHBoxLayout()
        head.setContentsMargins(tokens.space_normal, tokens.space_normal, tokens.space_normal, 0)
        head.addWidget(self._common_history)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(sides, 1)
        column.addWidget(self._error_banner)
        self.views[0].transcript.setFocus()

    def _connect(self) -> None:
        comparison = self._comparison
        comparison.loaded.connect(self._on_loaded)
        comparison.failed.connect(self._on_failed)
        comparison.store.failed.connect(self._on_failed)
        self._actions.branches.refused.connect(self._on_failed)
        for number, view in enumerate(self.views):
            view.agent_chosen.connect(partial(comparison.show_branch, number))
            view.chosen.connect(partial(self._on_chosen, view))

    def _on_loaded(self) -> None:
        beginning = self._comparison.common_text
        self._common_history.set_text(f"Both go on from: “{beginning}”" if beginning else _APART)
        for view in self.views:
            view.transcript.to_start()

    def _on_chosen(self, view: ComparedBranchView) -> None:
        self._comparison.store.agents.continue_with(view.side.leaf_id)
        self.accept()

    def _on_failed(self, why: str) -> None:
        self._error_banner.show_message(why, "failed")
