"""A combo box inside something that scrolls."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox


class ComboBox(QComboBox):
    """Ignores the wheel, which scrolls what is around it."""

    def __init__(self, choices: tuple[str, ...]) -> None:
        super().__init__()
        self.addItems(choices)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
