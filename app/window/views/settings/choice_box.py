"""A box to choose one of a setting's values from; the wheel scrolls the page, not the value."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox


class ChoiceBox(QComboBox):
    def __init__(self, choices: tuple[str, ...]) -> None:
        super().__init__()
        self.addItems(choices)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
