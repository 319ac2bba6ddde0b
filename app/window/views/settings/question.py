"""Words that tell what would be done, and the buttons that answer them."""

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.window.theme.theme import Theme
from app.window.widgets.text_label import TextLabel


class QuestionView(QWidget):
    """Hidden until something is said or asked."""

    def __init__(self, theme: Theme, *answers: QPushButton) -> None:
        super().__init__()
        self._words = TextLabel(theme, wrap=True)
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
        column.addWidget(self._words)
        column.addWidget(self._answers)
        self.hide()

    def say(self, text: str) -> None:
        """Tell something that has no answer."""
        self._answers.hide()
        self._words.setText(text)
        self.show()

    def ask(self, text: str, safe: QPushButton) -> None:
        """Ask, with the keyboard on the answer that changes nothing."""
        self.say(text)
        self._answers.show()
        safe.setFocus()
