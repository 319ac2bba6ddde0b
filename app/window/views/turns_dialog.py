"""How the agents of a conversation take turns: the rule, the most replies in a row, and who moderates."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QDialog, QFormLayout, QHBoxLayout, QSpinBox, QVBoxLayout, QWidget

from app.protocol.agents import Agent
from app.protocol.conversations import TurnRule, TurnTaking
from app.window.theme.look import push_button, set_tip
from app.window.theme.theme import Theme
from app.window.views.turn_words import RULES
from app.window.widgets.text_label import TextLabel

_MOST = 50


class TurnsDialog(QDialog):
    """`chosen` has the new `TurnTaking`; Esc leaves it as it is."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, turns: TurnTaking, agents: tuple[Agent, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Turns")
        self._theme = theme
        self.rule, self.moderator, self.limit = QComboBox(), QComboBox(), QSpinBox()
        self._about = TextLabel(theme, size=theme.tokens.size_small, tone="muted", wrap=True)
        for rule, (name, _) in RULES.items():
            self.rule.addItem(name, rule)
        for agent in agents:
            self.moderator.addItem(agent.name, agent.id)
        self.limit.setRange(1, _MOST)
        self.limit.setValue(turns.limit)
        self.rule.setCurrentIndex(max(0, self.rule.findData(turns.rule)))
        self.moderator.setCurrentIndex(max(0, self.moderator.findData(turns.moderator_id)))
        self._lay_out()
        self.rule.currentIndexChanged.connect(self._show_rule)
        self._show_rule()
        self.rule.setFocus()

    @property
    def turns(self) -> TurnTaking:
        """As it stands in the fields."""
        rule = self._rule
        moderator: object = self.moderator.currentData()
        has_one = rule == "moderator" and isinstance(moderator, str)
        return TurnTaking(rule=rule, limit=self.limit.value(), moderator_id=str(moderator) if has_one else None)

    @property
    def _rule(self) -> TurnRule:
        return tuple(RULES)[self.rule.currentIndex()]

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.setMinimumWidth(tokens.column // 2)
        self.limit.lineEdit().setTextMargins(tokens.space_close, 0, tokens.space_close, 0)  # the sheet cannot
        set_tip(self.limit, "After so many replies without a word of yours they wait for you")
        form = QFormLayout()
        form.setHorizontalSpacing(tokens.space_wide)
        form.setVerticalSpacing(tokens.space_close)
        explained = QVBoxLayout()
        explained.setSpacing(tokens.space_tight)
        explained.addWidget(self.rule)
        explained.addWidget(self._about)
        form.addRow("Who speaks", explained)
        form.addRow("Moderator", self.moderator)
        form.addRow("Replies in a row", self.limit)
        names = {self.rule: "Who speaks", self.moderator: "Moderator", self.limit: "Replies in a row"}
        for field, name in names.items():
            field.setAccessibleName(name)
            field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        save, cancel = push_button("Save", "primary"), push_button("Cancel")
        save.clicked.connect(self._on_saved)
        cancel.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(save)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_wide)
        column.setSpacing(tokens.space_wide)
        column.addLayout(form)
        column.addLayout(buttons)

    def _show_rule(self) -> None:
        self._about.setText(RULES[self._rule][1])
        self.moderator.setEnabled(self._rule == "moderator")

    def _on_saved(self) -> None:
        self.chosen.emit(self.turns)
        self.accept()
