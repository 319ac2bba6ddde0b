"""A question inside a page, with its answers below it."""

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from errand.window.theme.theme import Theme
from errand.window.widgets.labels import TextLabel


class ConfirmationView(QWidget):
    """Hidden until `show_text` or `ask` is called."""

    def __init__(self, theme: Theme, *answers: QPushButton) -> None:
        super().__init__()
        self._label = TextLabel(theme, wrap=True)
        self._answers = QWidget()
        row = QHBoxLayout(self._answers)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.tokens.space_close)
        for answer in answers:
            row.addWidget(answer)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        column.addWidget(self._label)
        column.addWidget(self._answers)
        self.hide()

    def show_text(self, text: str) -> None:
        """Show a message without answers."""
        self._answers.hide()
        self._label.setText(text)
        self.show()

    def ask(self, text: str, safe: QPushButton) -> None:
        """Ask, with the focus on the answer that changes nothing."""
        self.show_text(text)
        self._answers.show()
        safe.setFocus()
