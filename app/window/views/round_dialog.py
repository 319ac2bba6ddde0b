"""A dialog without a frame of the system's: a raised ground with round corners, and nothing outside them."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QDialog, QWidget

from app.window.blocks.paint import rounded
from app.window.theme.theme import Theme


class RoundDialog(QDialog):
    """It paints itself: of a window that may be seen through, Qt paints no ground from the style sheet."""

    def __init__(self, theme: Theme, kind: Qt.WindowType, parent: QWidget | None = None) -> None:
        super().__init__(parent, kind | Qt.WindowType.FramelessWindowHint)
        self._look = theme
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._look.tokens
        painter = QPainter(self)
        rounded(painter, self.rect(), tokens.radius_card, fill=tokens.raised, line=tokens.outline)
        painter.end()
