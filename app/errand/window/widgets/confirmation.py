"""A question inside a page, with its answers below it."""

from PySide6.QtWidgets import QPushButton, QWidget

from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, set_hbox, set_vbox
from errand.window.widgets.labels import TextLabel


class ConfirmationView(QWidget):
    """Hidden until `show_text` or `ask` is called."""

    def __init__(self, theme: Theme, *answers: QPushButton) -> None:
        super().__init__()
        self._label = TextLabel(theme, wrap=True)
        self._answers = QWidget()
        set_hbox(self._answers, *answers, STRETCH, spacing=theme.tokens.space_close)
        set_vbox(self, self._label, self._answers, spacing=theme.tokens.space_close)
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
