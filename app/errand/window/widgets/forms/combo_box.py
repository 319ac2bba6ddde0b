"""A combo box that leaves the mouse wheel to the scroll area around it."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox


class ComboBox(QComboBox):
    """Ignores wheel events, and takes the focus only by a click or Tab."""

    def __init__(self, choices: tuple[str, ...], *, name: str = "") -> None:
        super().__init__()
        self.addItems(choices)
        self.setAccessibleName(name)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
