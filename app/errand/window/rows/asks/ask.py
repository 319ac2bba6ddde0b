"""The row of an ask: selects the card for its kind; cards for questions, limits and calls with unknown outcome."""

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from errand.client.display_text import limit_amount_text, limit_unit, new_limit, subject_text
from errand.client.safe_text import plain
from errand.protocol.asks import Ask, AskAnswerParams, AskKind, ReachedLimit
from errand.window.rows.asks.approval import ApprovalCard
from errand.window.rows.asks.ask_card import AskCard, outcome_text
from errand.window.rows.base import RowActions, RowKind, RowView, Spacing, card_estimate
from errand.window.rows.row import AskRow
from errand.window.theme.style import push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.buttons import ChoiceButton
from errand.window.widgets.code_excerpt import CodeExcerptView
from errand.window.widgets.containers import FlowLayout
from errand.window.widgets.labels import TextLabel

_COMMAND_LINES = 24


class QuestionCard(AskCard):
    def __init__(self, theme: Theme, actions: RowActions) -> None:
        super().__init__(theme, actions, "circle-question-mark", "Question", "Question")
        self._text = TextLabel(theme, size=theme.tokens.size_large, wrap=True)
        self.details.addWidget(self._text)
        self._choices = QVBoxLayout()
        self._choices.setSpacing(theme.tokens.space_tight)
        self._buttons: list[ChoiceButton] = []
        self._field = QLineEdit()
        self._field.setMaxLength(100_000)
        self._reply = push_button("Reply", "primary")
        row = QHBoxLayout()
        row.setSpacing(theme.tokens.space_close)
        row.addWidget(self._field, 1)
        row.addWidget(self._reply)
        self.controls_column.addLayout(self._choices)
        self.controls_column.addLayout(row)
        self._field.textChanged.connect(self._on_text_changed)
        self._field.returnPressed.connect(self._on_replied)
        self._reply.clicked.connect(self._on_replied)

    def set_ask(self, ask: Ask) -> None:
        self._text.setText(plain(ask.text))
        if ask.id != self.ask_id:
            self._show_choices(ask.choices)
            self.ask_id = ask.id
            self._field.setText(self.row_actions.branches.drafts.get(ask.id, ""))
        name = "Or answer in your own words" if ask.choices else "Your answer"
        self._field.setPlaceholderText(name)
        self._field.setAccessibleName(name)
        self._on_text_changed(self._field.text())
        super().set_ask(ask)

    def take_focus(self) -> None:
        """Focus the text field, where Enter cannot answer by accident; Shift+Tab reaches the choices."""
        self._field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _show_choices(self, choices: tuple[str, ...]) -> None:
        for button in self._buttons:
            self._choices.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = [ChoiceButton(self.theme, plain(choice)) for choice in choices]
        for button, choice in zip(self._buttons, choices, strict=True):
            button.clicked.connect(partial(self._on_chosen, choice))
            self._choices.addWidget(button)

    def _on_chosen(self, choice: str) -> None:
        self.row_actions.answer(AskAnswerParams(ask_id=self.ask_id, text=choice))

    def _on_text_changed(self, text: str) -> None:
        self._reply.setEnabled(bool(text.strip()))
        if self.ask_id:
            self.row_actions.branches.drafts[self.ask_id] = text

    def _on_replied(self) -> None:
        text = self._field.text().strip()
        if text:
            self.row_actions.answer(AskAnswerParams(ask_id=self.ask_id, text=text))


class LimitCard(AskCard):
    def __init__(self, theme: Theme, actions: RowActions) -> None:
        super().__init__(theme, actions, "gauge", "Limit reached", "Limit reached")
        self._limit: ReachedLimit | None = None
        self._text = TextLabel(theme, wrap=True)
        self.details.addWidget(self._text)
        self._continue = push_button("Go on", "primary")
        stop = push_button("Stop here")
        self._amount = QLineEdit()
        self._raise = push_button("Raise to this")
        for pair in ((self._continue, stop), (self._amount, self._raise)):
            self.controls_column.addLayout(FlowLayout(theme.tokens.space_close, *pair))
        self._amount.textChanged.connect(self._on_amount_changed)
        self._amount.returnPressed.connect(self._on_raised)
        self._raise.clicked.connect(self._on_raised)
        self._continue.clicked.connect(self._on_continue_clicked)
        stop.clicked.connect(self._on_stop_clicked)

    def set_ask(self, ask: Ask) -> None:
        self._text.setText(plain(ask.text))
        self._continue.setText(plain(next(iter(ask.choices), "Go on")))
        self._continue.setAccessibleName(self._continue.text())
        if ask.id != self.ask_id:
            self._limit = ask.limit
            self._amount.clear()
            name = f"New limit in {limit_unit(ask.limit.kind)}" if ask.limit else ""
            self._amount.setPlaceholderText(name)
            self._amount.setAccessibleName(name)
            self._on_amount_changed()
        self._amount.setVisible(ask.limit is not None)
        self._raise.setVisible(ask.limit is not None)
        super().set_ask(ask)

    def take_focus(self) -> None:
        self._continue.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _on_amount_changed(self) -> None:
        self._raise.setEnabled(self._new_limit is not None)
        is_wrong = bool(self._amount.text().strip()) and self._new_limit is None
        set_style(self._amount, "state", "wrong" if is_wrong else "")
        hint = f"More than {limit_amount_text(self._limit.kind, self._limit.used)}" if self._limit else ""
        set_tool_tip(self._amount, hint)

    def _on_raised(self) -> None:
        amount = self._new_limit
        if amount is not None:
            self.row_actions.answer(AskAnswerParams(ask_id=self.ask_id, allow=True, amount=amount))

    @property
    def _new_limit(self) -> float | None:
        return new_limit(self._limit, self._amount.text()) if self._limit is not None else None

    def _on_continue_clicked(self) -> None:
        self.row_actions.answer(AskAnswerParams(ask_id=self.ask_id, allow=True))

    def _on_stop_clicked(self) -> None:
        self.row_actions.answer(AskAnswerParams(ask_id=self.ask_id, allow=False))


class UnknownOutcomeCard(AskCard):
    """Has no default button: only the user can check what happened."""

    def __init__(self, theme: Theme, actions: RowActions) -> None:
        super().__init__(theme, actions, "triangle-alert", "Outcome unknown", "Outcome unknown")
        self._text = TextLabel(theme, wrap=True)
        self._command = CodeExcerptView(theme, "What was under way", most_lines=_COMMAND_LINES)
        self._started = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        self.details.addWidget(self._text)
        self._command.resized.connect(self.resized)
        self.details.addWidget(self._command)
        self.details.addWidget(self._started)
        self._row = QHBoxLayout()
        self._row.setSpacing(theme.tokens.space_close)
        self._row.addStretch()
        self.controls_column.addLayout(self._row)
        self._buttons: list[QPushButton] = []

    def set_ask(self, ask: Ask) -> None:
        assert ask.unknown is not None
        if ask.id != self.ask_id:
            self._text.setText(plain(ask.text))
            self._command.set_text(subject_text(ask.unknown))
            self._started.setText(f"Started at {ask.unknown.started_at.astimezone():%H:%M:%S}")
            self._show_choices(ask.choices)
        waiting = ask.status == "waiting"
        self._text.setVisible(waiting)
        self._started.setVisible(waiting)
        super().set_ask(ask)

    def take_focus(self) -> None:
        if self._buttons:
            self._buttons[0].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _show_choices(self, choices: tuple[str, ...]) -> None:
        for button in self._buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = [push_button(plain(choice)) for choice in choices]
        for number, (button, choice) in enumerate(zip(self._buttons, choices, strict=True)):
            button.clicked.connect(partial(self._on_chosen, choice))
            self._row.insertWidget(number, button)

    def _on_chosen(self, choice: str) -> None:
        self.row_actions.answer(AskAnswerParams(ask_id=self.ask_id, text=choice))


class AskView(RowView[AskRow]):
    """A card is created when its kind is first shown, and reused for later asks."""

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row_actions = actions
        self._cards: dict[AskKind, AskCard] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)

    def set_row(self, row: AskRow) -> None:
        card = self._card(row.ask.kind)
        card.set_ask(row.ask)
        card.set_others(row.others)
        for other in self._cards.values():
            other.setVisible(other is card)

    def take_focus(self) -> None:
        for card in self._cards.values():
            if not card.isHidden():
                card.take_focus()

    def _card(self, kind: AskKind) -> AskCard:
        if kind not in self._cards:
            card = self._create_card(kind)
            card.resized.connect(self.resized)
            card.part_opened.connect(self.part_opened)
            self._cards[kind] = card
            self._column.addWidget(card)
        return self._cards[kind]

    def _create_card(self, kind: AskKind) -> AskCard:
        match kind:
            case "question":
                return QuestionCard(self.theme, self._row_actions)
            case "approval":
                return ApprovalCard(self.theme, self._row_actions)
            case "limit":
                return LimitCard(self.theme, self._row_actions)
            case "unknown":
                return UnknownOutcomeCard(self.theme, self._row_actions)


def _markdown(row: AskRow, is_open: bool) -> str:
    asked = plain(row.ask.text)
    return asked if row.ask.status == "waiting" else f"{asked}\n{outcome_text(row.ask)}"


ASK = RowKind(
    AskRow,
    AskView,
    spacing=lambda row: Spacing.CARD,
    estimate=card_estimate,
    markdown=_markdown,
    text=lambda row: plain(row.ask.text),
)
