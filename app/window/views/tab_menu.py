"""What can be done to one tab."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMenu, QWidget


class TabMenu(QMenu):
    """Each entry is a signal; the menu goes when it was used."""

    pin_asked = Signal()
    out_asked = Signal()
    close_asked = Signal()
    close_others_asked = Signal()
    close_right_asked = Signal()

    def __init__(self, parent: QWidget, *, is_pinned: bool) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.addAction("Unpin tab" if is_pinned else "Pin tab").triggered.connect(self.pin_asked)
        self.addAction("Move to a window of its own").triggered.connect(self.out_asked)
        self.addSeparator()
        self.addAction("Close").triggered.connect(self.close_asked)
        self.addAction("Close the others").triggered.connect(self.close_others_asked)
        self.addAction("Close those to the right").triggered.connect(self.close_right_asked)
