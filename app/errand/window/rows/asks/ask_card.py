"""Base class of the cards for asks: heading, controls, the line once the ask is settled."""

from collections.abc import Sequence
from datetime import timedelta

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from errand.client.number_format import clock_time, short_day
from errand.client.safe_text import plain
from errand.client.texts.asks import asked_text, choice_text, deadline_text, settled_text
from errand.client.texts.limits import limit_amount_text
from errand.client.texts.rules import REMEMBERED, offer_text
from errand.protocol.asks import Ask, AskAnswerParams
from errand.text.translation import tr
from errand.window import CLIENT_NAME
from errand.window.rows.asks.choices import MAX_CHOICES
from errand.window.rows.base import RowActions
from errand.window.theme.style import Tone
from errand.window.theme.theme import Theme
from errand.window.widgets.containers import Card
from errand.window.widgets.input.reaction_time import ReactionTime
from errand.window.widgets.labels import ElidedLabel, TextLabel, one_line

_ANSWER = 60  # characters of an answer shown in a line


class AskCard(Card):
    """A subclass fills `details`, which stay visible, and `controls`, which are hidden once the ask is settled.

    The digits 1 to 9 press the buttons in `choices`, unless a text field has the focus. Keys and clicks decide nothing
    before a person had time to see the ask. `resized` is emitted when a part of the card was opened or closed,
    `part_opened` with the part.
    """

    resized = Signal()
    part_opened = Signal(QWidget)

    def __init__(self, theme: Theme, actions: RowActions, icon: str, title: str, settled: str) -> None:
        super().__init__(theme, "waiting")
        self.theme = theme
        self.row_actions = actions
        self.ask_id = ""
        self._icon_name = icon
        self._titles = (settled, title)
        self._waiting = True
        self._visible_id = ""
        self._reaction_time = ReactionTime(self)
        self._icon = QLabel()
        self._title = ElidedLabel(theme, title, bold=True, tone="waiting")
        self.heading = _row(theme)
        self.heading.addWidget(self._icon)
        self.heading.addWidget(self._title, 1)
        self.details = _column(theme)
        self.controls = QWidget()
        self.controls_column = _column(theme)
        self.controls.setLayout(self.controls_column)
        self._settled = TextLabel(theme, tone="muted", wrap=True)
        self.body.addLayout(self.heading)
        self.body.addLayout(self.details)
        self.body.addWidget(self.controls)
        self.body.addWidget(self._settled)
        theme.changed.connect(self._on_colours_changed)

    def set_ask(self, ask: Ask) -> None:
        """Show this ask. Subclasses update their own part first, and clear text typed for another ask."""
        self.ask_id = ask.id
        if ask.id != self._visible_id:
            self._visible_id = ask.id
            self._reaction_time.restart()
        self._waiting = ask.status == "waiting"
        self.set_tone("waiting" if self._waiting else "plain")
        sub_agent = tr("sub-agent “{name}”").format(name=plain(ask.sub_agent)) if ask.sub_agent else ""
        self._title.set_text(" · ".join(filter(None, (self._titles[self._waiting], sub_agent))))
        self._title.set_tone("waiting" if self._waiting else "muted")
        self.controls.setVisible(self._waiting)
        text = deadline_text(ask) if self._waiting else outcome_text(ask)
        self._settled.setVisible(bool(text))
        self._settled.setText(text)
        self._settled.set_tone(_tone(ask))
        self.setAccessibleName(f"{self._title.full_text}: {asked_text(ask)}")
        self._on_colours_changed()

    def set_others(self, others: tuple[Ask, ...]) -> None:
        """Identical asks that wait; for cards that can settle them together."""

    def take_focus(self) -> None:
        """Focus the first control used to answer."""
        raise NotImplementedError

    def close_part(self) -> bool:
        """Close an open part; False if there is none."""
        return False

    def choose(self, number: int) -> bool:
        """Press the button of a digit; False if there is none, or if the card has only just appeared."""
        if not self._can_decide or not 0 < number <= min(len(self.choices), MAX_CHOICES):
            return False
        self.choices[number - 1].click()
        return True

    @property
    def choices(self) -> Sequence[QAbstractButton]:
        """The buttons that answer, in the order of their digits."""
        return ()

    def answer(self, params: AskAnswerParams) -> None:
        """Settle the ask, unless it has only just appeared."""
        if self._can_decide:
            self.row_actions.answer(params)

    @property
    def _can_decide(self) -> bool:
        return self._waiting and self._reaction_time.is_over

    def keyPressEvent(self, event: QKeyEvent) -> None:
        button = self._choice_of(event)
        if button is not None:
            if self._can_decide and not event.isAutoRepeat():
                button.click()
        else:
            super().keyPressEvent(event)

    def _choice_of(self, event: QKeyEvent) -> QAbstractButton | None:
        """Return the visible button of a digit."""
        is_bare = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        number = event.key() - Qt.Key.Key_1
        if not is_bare or not 0 <= number < min(len(self.choices), MAX_CHOICES) or not self._waiting:
            return None
        return self.choices[number] if self.choices[number].isVisible() else None

    def _on_colours_changed(self) -> None:
        side = self.theme.tokens.icon_small
        icon = self.theme.icon(self._icon_name, "waiting" if self._waiting else "muted")
        self._icon.setPixmap(icon.pixmap(QSize(side, side), self.devicePixelRatio()))


def show_digit(button: QPushButton, number: int) -> None:
    """Show the digit that presses this button; its accessible name stays."""
    button.setText(f"{number}  {button.accessibleName()}" if number <= MAX_CHOICES else button.accessibleName())


def settled_words(ask: Ask) -> str:
    """Return the outcome for a line that names what was asked: `approved by you 11:04`; empty if cancelled."""
    if ask.status == "cancelled":
        return ""
    outcome = settled_text(ask) or _answer_words(ask)
    when = f" {ask.answered_at.astimezone():%H:%M}" if ask.answered_at else ""
    return f"{outcome}{when}"


def _answer_words(ask: Ask) -> str:
    by_rule = ask.settled_by == "rule"
    match ask.kind:
        case "approval":
            if ask.allowed:
                return tr("approved by your rule") if by_rule else tr("approved by you")
            return tr("denied by your rule") if by_rule else tr("denied by you")
        case "limit":
            if ask.allowed and ask.amount is not None and ask.limit is not None:
                return tr("raised to {amount} by you").format(amount=limit_amount_text(ask.limit.kind, ask.amount))
            return tr("continued by you") if ask.allowed else tr("stopped by you")
        case "question" | "unknown":
            return tr("you answered “{answer}”").format(answer=one_line(choice_text(ask, ask.answer or ""), _ANSWER))


def outcome_text(ask: Ask) -> str:
    """Return the outcome of the ask: answer, author and time."""
    if ask.status == "cancelled":
        return tr("No longer needed.")
    who = tr("you") if ask.answered_by == CLIENT_NAME else ask.answered_by
    by = tr("by {who}").format(who=who) if who else ""
    when = clock_time(ask.answered_at) if ask.answered_at else ""
    return " · ".join(filter(None, (_decision(ask), by, when)))


def _decision(ask: Ask) -> str:
    answer = choice_text(ask, ask.answer or "")
    if settled := settled_text(ask):
        return f"{settled[0].upper()}{settled[1:]}"
    match ask.kind:
        case "question":
            return tr("Answered: {answer}").format(answer=answer)
        case "unknown":
            return tr("Chosen: {answer}").format(answer=answer)
        case "limit":
            if ask.allowed and ask.amount is not None and ask.limit is not None:
                return tr("Raised to {amount}").format(amount=limit_amount_text(ask.limit.kind, ask.amount))
            return tr("Continued") if ask.allowed else tr("Stopped")
        case "approval":
            if not ask.allowed:
                return tr("Denied: {answer}").format(answer=answer) if answer else tr("Denied")
            return _allowed_text(ask)


def _allowed_text(ask: Ask) -> str:
    if ask.remember == "once" or ask.approval is None:
        return tr("Allowed once")
    what = offer_text(ask.approval.offers[ask.offer]) if ask.offer < len(ask.approval.offers) else ""
    until = ""
    if ask.expires_s is not None and ask.answered_at is not None:
        end = (ask.answered_at + timedelta(seconds=ask.expires_s)).astimezone()
        until = tr("until {time}").format(time=f"{short_day(end)}, {clock_time(end)}")
    return tr("Allowed: {what}").format(what=", ".join(filter(None, (what, REMEMBERED[ask.remember], until))))


def _tone(ask: Ask) -> Tone:
    if ask.kind != "approval" or ask.status != "answered":
        return "muted"
    return "done" if ask.allowed else "failed"


def _row(theme: Theme) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(theme.tokens.space_close)
    row.setAlignment(Qt.AlignmentFlag.AlignVCenter)
    return row


def _column(theme: Theme) -> QVBoxLayout:
    column = QVBoxLayout()
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(theme.tokens.space_close)
    return column
