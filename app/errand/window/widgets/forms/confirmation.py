"""A question inside a page, with its answers below it."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPushButton, QWidget

from errand.text.translation import tr
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, set_hbox, set_vbox
from errand.window.widgets.labels import TextLabel


class ConfirmationView(QWidget):
    """A question that is hidden until `ask`, and again after any answer.

    Its owner connects the answers that do something. `cancel` changes nothing: it has the focus at first, Escape
    presses it, and it gives the focus back to `opener`. Without a `cancel` there is a button "Cancel" at the end.
    """

    def __init__(
        self, theme: Theme, *answers: QPushButton, cancel: QPushButton | None = None, opener: QWidget | None = None
    ) -> None:
        super().__init__()
        self._cancel = cancel if cancel is not None else push_button(tr("Cancel"))
        self._opener = opener
        self._label = TextLabel(theme, wrap=True)
        self._answers = QWidget()
        if self._cancel not in answers:
            answers = (*answers, self._cancel)
        set_hbox(self._answers, *answers, STRETCH, spacing=theme.tokens.space_close)
        set_vbox(self, self._label, self._answers, spacing=theme.tokens.space_close)
        for answer in answers:
            answer.clicked.connect(self.hide)
        self._cancel.clicked.connect(self._on_cancelled)
        self.hide()

    def show_text(self, text: str) -> None:
        """Show a message without answers."""
        self._answers.hide()
        self._label.setText(text)
        self.show()

    def ask(self, text: str) -> None:
        """Ask, with the focus on the answer that changes nothing."""
        self.show_text(text)
        self._answers.show()
        self._cancel.setFocus()

    def cancel(self) -> None:
        """Take the question or the message back, as Cancel does."""
        self._cancel.click()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape takes the question back; the dialog around it stays open."""
        if event.key() == Qt.Key.Key_Escape:
            self.cancel()
        else:
            super().keyPressEvent(event)

    def _on_cancelled(self) -> None:
        if self._opener is not None:
            self._opener.setFocus()
