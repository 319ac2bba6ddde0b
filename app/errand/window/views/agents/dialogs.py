"""Dialogs that add an agent, remove one, and set the turn order."""

from typing import get_args

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QSpinBox, QWidget

from errand.client.texts.turns import TURN_RULES
from errand.protocol.agents import Agent, Color, Personality
from errand.protocol.conversations import TurnRule, TurnTaking
from errand.text.translation import tr
from errand.window.stores.conversation.agents import NewAgent
from errand.window.theme.style import set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.agent_dot import COLOR_NAMES, agent_icon
from errand.window.widgets.boxes import vbox
from errand.window.widgets.dialogs import ConfirmDialog
from errand.window.widgets.forms.form import FormDialog, form, line_edit
from errand.window.widgets.labels import TextLabel

_COLORS: tuple[Color, ...] = get_args(Color)
_ABOUT = tr(
    "It starts where the first agent is, sees all messages, and gets its own branch when it writes "
    "next to another agent."
)
_MAX_NAME = 40

_MAX_TURNS = 50


class AddAgentDialog(FormDialog):
    """`chosen` gives a `NewAgent`; Esc cancels."""

    chosen = Signal(object)

    def __init__(
        self, theme: Theme, personalities: tuple[Personality, ...], models: tuple[str, ...], parent: QWidget
    ) -> None:
        super().__init__(theme, tr("Add agent"), tr("Add"), parent)
        self._personalities = personalities
        self.personality, self.model, self.color = QComboBox(), QComboBox(), QComboBox()
        self.name = line_edit(tr("Name"), max_length=_MAX_NAME)
        self._fill(models)
        self._lay_out()
        self.personality.currentIndexChanged.connect(self._show_personality)
        self._show_personality()
        self.personality.setFocus()

    @property
    def agent(self) -> NewAgent:
        """The agent in the fields."""
        model: object = self.model.currentData()
        chosen = self._personalities[self.personality.currentIndex()] if self._personalities else None
        return NewAgent(
            personality_id=chosen.id if chosen is not None else "",
            name=self.name.text().strip(),
            model=str(model or ""),
            color=_COLORS[self.color.currentIndex()],
        )

    def _fill(self, models: tuple[str, ...]) -> None:
        for personality in self._personalities:
            self.personality.addItem(agent_icon(personality.color, self.theme), personality.name, personality.id)
        self.model.addItem(tr("From personality"), "")
        for model in models:
            self.model.addItem(model, model)
        for color in _COLORS:
            self.color.addItem(agent_icon(color, self.theme), COLOR_NAMES[color], color)

    def _lay_out(self) -> None:
        fields = (
            (tr("Personality"), self.personality),
            (tr("Name"), self.name),
            (tr("Model"), self.model),
            (tr("Colour"), self.color),
        )
        for name, field in fields:
            field.setAccessibleName(name)
            field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.lay_out(TextLabel(self.theme, _ABOUT, tone="muted", wrap=True), form(self.theme, *fields))
        self.confirm.clicked.connect(self._on_added)
        self.name.returnPressed.connect(self._on_added)

    def _show_personality(self) -> None:
        """Takes name and colour from the personality."""
        if self._personalities:
            chosen = self._personalities[self.personality.currentIndex()]
            self.name.setPlaceholderText(chosen.name)
            self.color.setCurrentIndex(_COLORS.index(chosen.color))

    def _on_added(self) -> None:
        self.chosen.emit(self.agent)
        self.accept()


class RemoveAgentDialog(ConfirmDialog):
    """`accepted` removes the agent."""

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(
            parent,
            tr("Remove agent"),
            tr("Remove {name} from this conversation?").format(name=name),
            tr("Its messages and branches stay. Its interrupted tasks can't be resumed."),
            tr("Remove"),
        )


class TurnOrderDialog(FormDialog):
    """`chosen` gives the new `TurnTaking`; Esc cancels."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, turns: TurnTaking, agents: tuple[Agent, ...], parent: QWidget) -> None:
        super().__init__(theme, tr("Turn order"), tr("Save"), parent)
        self.rule, self.moderator, self.limit = QComboBox(), QComboBox(), QSpinBox()
        self._about = TextLabel(theme, size=theme.tokens.size_small, tone="muted", wrap=True)
        for rule, (name, _) in TURN_RULES.items():
            self.rule.addItem(name, rule)
        for agent in agents:
            self.moderator.addItem(agent.name, agent.id)
        self.limit.setRange(1, _MAX_TURNS)
        self.limit.setValue(turns.limit)
        self.rule.setCurrentIndex(max(0, self.rule.findData(turns.rule)))
        self.moderator.setCurrentIndex(max(0, self.moderator.findData(turns.moderator_id)))
        self._lay_out()
        self.rule.currentIndexChanged.connect(self._show_rule)
        self._show_rule()
        self.rule.setFocus()

    @property
    def turns(self) -> TurnTaking:
        """The turn order in the fields."""
        rule = self._rule
        moderator: object = self.moderator.currentData()
        has_one = rule == "moderator" and isinstance(moderator, str)
        return TurnTaking(rule=rule, limit=self.limit.value(), moderator_id=str(moderator) if has_one else None)

    @property
    def _rule(self) -> TurnRule:
        return tuple(TURN_RULES)[self.rule.currentIndex()]

    def _lay_out(self) -> None:
        tokens = self.theme.tokens
        self.limit.lineEdit().setTextMargins(tokens.space_close, 0, tokens.space_close, 0)  # QSS cannot
        set_tool_tip(self.limit, tr("After this many replies in a row they wait for you"))
        names = {self.rule: tr("Who replies"), self.moderator: tr("Moderator"), self.limit: tr("Replies in a row")}
        for field, name in names.items():
            field.setAccessibleName(name)
            field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        fields = form(
            self.theme,
            (names[self.rule], vbox(self.rule, self._about, spacing=tokens.space_tight)),
            (names[self.moderator], self.moderator),
            (names[self.limit], self.limit),
        )
        self.lay_out(fields)
        self.confirm.clicked.connect(self._on_saved)

    def _show_rule(self) -> None:
        self._about.setText(TURN_RULES[self._rule][1])
        self.moderator.setEnabled(self._rule == "moderator")

    def _on_saved(self) -> None:
        self.chosen.emit(self.turns)
        self.accept()
