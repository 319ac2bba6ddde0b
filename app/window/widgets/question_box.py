"""A question with buttons, whose default button stays the default."""

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtWidgets import QMessageBox, QPushButton, QWidget


class QuestionBox(QMessageBox):
    """Where the style changes, as when the system turns dark, Qt gives focus and Enter to the first button."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._default: QPushButton | None = None

    def set_default(self, button: QPushButton) -> None:
        self._default = button
        self.setDefaultButton(button)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            QTimer.singleShot(0, self, self._restore)  # the buttons hear of the new style after this

    def _restore(self) -> None:
        if self._default is not None:
            self.setDefaultButton(self._default)
