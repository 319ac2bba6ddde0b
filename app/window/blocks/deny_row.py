"""The part of an approval that denies with a reason, which the model reads."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from app.window.theme.look import push_button
from app.window.theme.theme import Theme

_NAME = "Why not? The agent reads this and goes on"


class DenyRow(QWidget):
    """`denied` comes with the reason."""

    denied = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._field = QLineEdit()
        self._field.setPlaceholderText(_NAME)
        self._field.setAccessibleName(_NAME)
        button = push_button("Deny", "danger")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, theme.tokens.space_tight, 0, 0)
        row.setSpacing(theme.tokens.space_close)
        row.addWidget(self._field, 1)
        row.addWidget(button)
        self._field.returnPressed.connect(self._on_denied)
        button.clicked.connect(self._on_denied)

    def clear(self) -> None:
        self._field.clear()

    def take_focus(self) -> None:
        self._field.setFocus()

    def _on_denied(self) -> None:
        self.denied.emit(self._field.text().strip())
