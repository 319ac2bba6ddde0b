"""The part of an approval that settles equal ones with it: how many wait, and the same answer for all."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.protocol.asks import Ask
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.widgets.text_label import TextLabel
from app.window.widgets.wrap_layout import WrapLayout


class TogetherRow(QWidget):
    """Hidden while nothing equal waits. `settled(allow)` is meant for the card's own ask and for `ask_ids`."""

    settled = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.ask_ids: tuple[str, ...] = ()
        self._words = TextLabel(theme, tone="muted", wrap=True)
        self._allow = push_button("")
        self._deny = push_button("")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.tokens.space_tight, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        column.addWidget(self._words)
        column.addLayout(WrapLayout(theme.tokens.space_close, self._allow, self._deny))
        self._allow.clicked.connect(self._on_allowed)
        self._deny.clicked.connect(self._on_denied)
        self.hide()

    def show_others(self, others: tuple[Ask, ...]) -> None:
        self.ask_ids = tuple(other.id for other in others)
        count = len(others)
        self.setVisible(count > 0)
        verb = "waits" if count == 1 else "wait"
        self._words.setText(f"{count} more just like this {verb}: the same command, folder and files.")
        for button, word, lasting in ((self._allow, "Allow", " once"), (self._deny, "Deny", "")):
            button.setText(f"{word} these {count + 1}{lasting}")
            button.setAccessibleName(button.text())

    def _on_allowed(self) -> None:
        self.settled.emit(True)

    def _on_denied(self) -> None:
        self.settled.emit(False)
