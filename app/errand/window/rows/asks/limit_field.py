"""The number field of a reached limit: how much more the task may use."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from errand.client.texts.limits import limit_after
from errand.protocol.asks import Ask, AskAnswerParams, ReachedLimit
from errand.protocol.tasks.groups import LimitKind
from errand.text.translation import decimal, tr
from errand.window.theme.style import set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.input.field_keys import ControlEnter
from errand.window.widgets.labels import TextLabel

_DIGITS = 9
# What stands before and after the number.
_WORDS: dict[LimitKind, tuple[str, str]] = {
    "turns": ("", tr("more turns")),
    "minutes": ("", tr("more minutes")),
    "tokens": ("", tr("more tokens")),
    "money": ("$", tr("more")),
    "day_tokens": ("", tr("more tokens today")),
    "day_money": ("$", tr("more today")),
}
_WHOLE_NUMBER = tr("A whole number above 0")
_NUMBER = tr("A number above 0")


class LimitField(QWidget):
    """Shows what continuing adds, which can be changed. Hidden for an ask without an amount.

    Emits `changed` when `answer` may have changed, and `submitted` on Enter with a valid number.
    """

    changed = Signal()
    submitted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._limit: ReachedLimit | None = None
        self._ask_id = ""
        self._before = TextLabel(theme, tone="muted")
        self._after = TextLabel(theme, tone="muted")
        self._field = QLineEdit()
        self._field.setFixedWidth(self._field.fontMetrics().horizontalAdvance("0" * _DIGITS) + theme.tokens.space_wide)
        self.setFocusProxy(self._field)
        ControlEnter(self._field)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.tokens.space_tight)
        for part in (self._before, self._field, self._after):
            row.addWidget(part)
        self._field.textChanged.connect(self._on_changed)
        self._field.returnPressed.connect(self._on_return_pressed)

    def set_ask(self, ask: Ask) -> None:
        """Show this ask; what was typed for it stays."""
        if ask.id == self._ask_id:
            return
        self._ask_id, self._limit = ask.id, ask.limit
        self.setVisible(ask.limit is not None)
        if ask.limit is not None:
            before, after = _WORDS[ask.limit.kind]
            self._before.setText(before)
            self._before.setVisible(bool(before))
            self._after.setText(after)
            self._field.setAccessibleName(" ".join((tr("Amount:"), before, after)).replace("  ", " "))
            self._field.setText(_number_text(ask.limit))
        self._on_changed()

    @property
    def answer(self) -> AskAnswerParams | None:
        """Go on: with as much again, or with the typed amount. None if that is no valid number."""
        limit = self._limit
        if limit is None or self._field.text().strip() == _number_text(limit):
            return AskAnswerParams(ask_id=self._ask_id, allow=True)
        amount = limit_after(limit, self._field.text())
        return AskAnswerParams(ask_id=self._ask_id, allow=True, amount=amount) if amount is not None else None

    def _on_changed(self) -> None:
        is_wrong = self.answer is None
        set_style(self._field, "state", "wrong" if is_wrong else "")
        is_whole = self._limit is not None and self._limit.kind in ("turns", "tokens", "day_tokens")
        set_tool_tip(self._field, (_WHOLE_NUMBER if is_whole else _NUMBER) if is_wrong else "")
        self.changed.emit()

    def _on_return_pressed(self) -> None:
        if self.answer is not None:
            self.submitted.emit()


def _number_text(limit: ReachedLimit) -> str:
    """Money with cents, `2.50`; other numbers as short as possible."""
    return decimal(f"{limit.adds:.2f}" if limit.kind in ("money", "day_money") else f"{limit.adds:.10g}")
