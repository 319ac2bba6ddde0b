"""The row of an ask: selects the card for its kind; cards for questions, limits and calls with unknown outcome."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from errand.client.conversation.rows import AskRow
from errand.client.safe_text import plain
from errand.client.texts.asks import asked_text, choice_text, subject_text
from errand.protocol.asks import Ask, AskAnswerParams, AskKind
from errand.text.translation import tr
from errand.window.rows.asks.approval import ApprovalCard
from errand.window.rows.asks.ask_card import AskCard, outcome_text, settled_words, show_digit
from errand.window.rows.asks.choices import CONTINUE, STOP
from errand.window.rows.asks.limit_field import LimitField
from errand.window.rows.base import RowActions, RowKind, Spacing, card_estimate, line_estimate
from errand.window.rows.disclosure import DisclosureRowView, LinePart
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.theme.tokens import DesignTokens
from errand.window.widgets.boxes import fill, hbox
from errand.window.widgets.buttons import ChoiceButton
from errand.window.widgets.code_excerpt import CodeExcerptView
from errand.window.widgets.containers import FlowLayout
from errand.window.widgets.input.field_keys import ControlEnter
from errand.window.widgets.labels import TextLabel, one_line

_COMMAND_LINES = 24
_QUESTION = 200  # characters of a settled question shown in its line

_ICONS: dict[AskKind, str] = {
    "question": "circle-question-mark",
    "approval": "shield-alert",
    "limit": "gauge",
    "unknown": "triangle-alert",
}
_ASKED: dict[AskKind, str] = {
    "question": tr("asked"),
    "approval": tr("asked for approval:"),
    "limit": tr("reached a limit:"),
    "unknown": tr("asked what to do:"),
}


class QuestionCard(AskCard):
    def __init__(self, theme: Theme, actions: RowActions) -> None:
        super().__init__(theme, actions, _ICONS["question"], tr("Question"), tr("Question"))
        self._text = TextLabel(theme, size=theme.tokens.size_large, wrap=True)
        self.details.addWidget(self._text)
        self._choices = QVBoxLayout()
        self._choices.setSpacing(theme.tokens.space_tight)
        self._buttons: list[ChoiceButton] = []
        self._field = QLineEdit()
        self._field.setMaxLength(100_000)
        ControlEnter(self._field)
        self._reply = push_button(tr("Reply"), "primary")
        self.controls_column.addLayout(self._choices)
        self.controls_column.addLayout(hbox(fill(self._field), self._reply, spacing=theme.tokens.space_close))
        self._field.textChanged.connect(self._on_text_changed)
        self._field.returnPressed.connect(self._on_replied)
        self._reply.clicked.connect(self._on_replied)

    def set_ask(self, ask: Ask) -> None:
        self._text.setText(asked_text(ask))
        if ask.id != self.ask_id:
            self._show_choices(ask.choices)
            self.ask_id = ask.id
            self._field.setText(self.row_actions.branches.drafts.get(ask.id, ""))
        name = tr("Or type your own answer") if ask.choices else tr("Your answer")
        self._field.setPlaceholderText(name)
        self._field.setAccessibleName(name)
        self._on_text_changed(self._field.text())
        super().set_ask(ask)

    def take_focus(self) -> None:
        """Focus the card, where digits choose, or without choices the text field. Enter cannot answer by accident."""
        (self if self._buttons else self._field).setFocus(Qt.FocusReason.ShortcutFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """A text typed in the card is an answer in one's own words."""
        super().keyPressEvent(event)
        if not event.isAccepted() and event.text().isprintable() and event.text():
            self._field.setFocus()
            self._field.insert(event.text())
            event.accept()

    @property
    def choices(self) -> Sequence[QAbstractButton]:
        return self._buttons

    def _show_choices(self, choices: tuple[str, ...]) -> None:
        for button in self._buttons:
            self._choices.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = [ChoiceButton(self.theme, plain(choice), number) for number, choice in enumerate(choices, 1)]
        for button, choice in zip(self._buttons, choices, strict=True):
            button.clicked.connect(partial(self._on_chosen, choice))
            self._choices.addWidget(button)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if self._buttons else Qt.FocusPolicy.NoFocus)

    def _on_chosen(self, choice: str) -> None:
        self.answer(AskAnswerParams(ask_id=self.ask_id, text=choice))

    def _on_text_changed(self, text: str) -> None:
        self._reply.setEnabled(bool(text.strip()))
        if self.ask_id:
            self.row_actions.branches.drafts[self.ask_id] = text

    def _on_replied(self) -> None:
        """Words that were typed here are meant for the question, however soon they come."""
        text = self._field.text().strip()
        if text:
            self.row_actions.answer(AskAnswerParams(ask_id=self.ask_id, text=text))


class LimitCard(AskCard):
    """Enter in the number field goes on with that amount."""

    def __init__(self, theme: Theme, actions: RowActions) -> None:
        super().__init__(theme, actions, _ICONS["limit"], tr("Limit reached"), tr("Limit reached"))
        self._text = TextLabel(theme, wrap=True)
        self.details.addWidget(self._text)
        self._continue = push_button(CONTINUE, "primary")
        self._stop = push_button(STOP)
        self._more = LimitField(theme)
        parts = (self._continue, self._more, self._stop)
        self.controls_column.addLayout(FlowLayout(theme.tokens.space_close, *parts))
        self._more.changed.connect(self._on_more_changed)
        self._more.submitted.connect(self._on_continued)
        self._continue.clicked.connect(self._on_continued)
        self._stop.clicked.connect(self._on_stop_clicked)

    def set_ask(self, ask: Ask) -> None:
        self._text.setText(asked_text(ask))
        others = next((choice_text(ask, choice) for choice in ask.choices), CONTINUE)
        self._continue.setAccessibleName(CONTINUE if ask.limit else others)
        for number, button in enumerate(self.choices, 1):
            show_digit(button, number)
        self._more.set_ask(ask)
        super().set_ask(ask)

    def take_focus(self) -> None:
        self._continue.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @property
    def choices(self) -> tuple[QPushButton, ...]:
        return (self._continue, self._stop)

    def _on_more_changed(self) -> None:
        self._continue.setEnabled(self._more.answer is not None)

    def _on_continued(self) -> None:
        if (answer := self._more.answer) is not None:
            self.answer(answer)

    def _on_stop_clicked(self) -> None:
        self.answer(AskAnswerParams(ask_id=self.ask_id, allow=False))


class UnknownOutcomeCard(AskCard):
    """Has no default button: only the user can check what happened."""

    def __init__(self, theme: Theme, actions: RowActions) -> None:
        super().__init__(theme, actions, _ICONS["unknown"], tr("Outcome unknown"), tr("Outcome unknown"))
        self._text = TextLabel(theme, wrap=True)
        self._command = CodeExcerptView(theme, tr("What was running"), most_lines=_COMMAND_LINES)
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
            self._text.setText(asked_text(ask))
            self._command.set_text(subject_text(ask.unknown))
            self._started.setText(
                tr("Started at {time}").format(time=f"{ask.unknown.started_at.astimezone():%H:%M:%S}")
            )
            self._show_choices(ask)
        waiting = ask.status == "waiting"
        self._text.setVisible(waiting)
        self._started.setVisible(waiting)
        super().set_ask(ask)

    def take_focus(self) -> None:
        if self._buttons:
            self._buttons[0].setFocus(Qt.FocusReason.ShortcutFocusReason)

    @property
    def choices(self) -> Sequence[QAbstractButton]:
        return self._buttons

    def _show_choices(self, ask: Ask) -> None:
        for button in self._buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = [push_button(choice_text(ask, choice)) for choice in ask.choices]
        for number, (button, choice) in enumerate(zip(self._buttons, ask.choices, strict=True)):
            show_digit(button, number + 1)
            button.clicked.connect(partial(self._on_chosen, choice))
            self._row.insertWidget(number, button)

    def _on_chosen(self, choice: str) -> None:
        self.answer(AskAnswerParams(ask_id=self.ask_id, text=choice))


class AskView(DisclosureRowView[AskRow]):
    """The card of an ask; once it is settled, a line that expands to the card.

    A card is created when its kind is first shown, and reused for later asks.
    """

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self.content.setContentsMargins(0, 0, 0, 0)
        self._cards: dict[AskKind, AskCard] = {}

    def show_current(self, row: AskRow) -> None:
        is_settled = row.ask.status != "waiting"
        if is_settled:
            self.show_line(_ICONS[row.ask.kind], _settled_line(row.ask))
        else:
            self.show_content_alone()
        card = self._card(row.ask.kind) if self.is_open or not is_settled else None
        if card is not None:
            card.set_ask(row.ask)
            card.set_others(row.others)
        for other in self._cards.values():
            other.setVisible(other is card)

    def take_focus(self) -> None:
        for card in self._cards.values():
            if not card.isHidden():
                card.take_focus()

    def choose(self, number: int) -> bool:
        return any(card.choose(number) for card in self._cards.values() if not card.isHidden())

    def close_part(self) -> bool:
        return any(card.close_part() for card in self._cards.values() if not card.isHidden())

    def _card(self, kind: AskKind) -> AskCard:
        if kind not in self._cards:
            card = self._create_card(kind)
            card.resized.connect(self.resized)
            card.part_opened.connect(self.part_opened)
            self._cards[kind] = card
            self.content.addWidget(card)
        return self._cards[kind]

    def _create_card(self, kind: AskKind) -> AskCard:
        match kind:
            case "question":
                return QuestionCard(self.theme, self.row_actions)
            case "approval":
                return ApprovalCard(self.theme, self.row_actions)
            case "limit":
                return LimitCard(self.theme, self.row_actions)
            case "unknown":
                return UnknownOutcomeCard(self.theme, self.row_actions)


def _settled_line(ask: Ask) -> list[LinePart]:
    """`asked Which colour? · you answered “blue” 11:04`."""
    outcome = settled_words(ask) or tr("no longer needed")
    return [
        LinePart(_ASKED[ask.kind]),
        LinePart(one_line(asked_text(ask), _QUESTION), "text", elides=True),
        LinePart("·"),
        LinePart(outcome, elides=True),
    ]


def _estimate(row: AskRow, width: int, tokens: DesignTokens) -> int:
    return (card_estimate if row.ask.status == "waiting" else line_estimate)(row, width, tokens)


def _markdown(row: AskRow, is_open: bool) -> str:
    asked = asked_text(row.ask)
    return asked if row.ask.status == "waiting" else f"{asked}\n{outcome_text(row.ask)}"


ASK = RowKind(
    AskRow,
    AskView,
    spacing=lambda row: Spacing.CARD if row.ask.status == "waiting" else Spacing.ACTIVITY,
    estimate=_estimate,
    markdown=_markdown,
    text=lambda row: asked_text(row.ask),
)
