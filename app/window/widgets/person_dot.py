"""An agent's colour as a dot, beside its name: colour alone says nothing."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.protocol.agents import Color
from app.window.theme.theme import Theme

_SIDE, _RADIUS = 10, 4.0


class PersonDot(QWidget):
    """Muted for one without a colour."""

    def __init__(self, theme: Theme, color: Color = "") -> None:
        super().__init__()
        self._theme = theme
        self._color: Color = color
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def set_color(self, color: Color) -> None:
        self._color = color
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(_SIDE, _SIDE)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        paint_person(painter, QRectF(self.rect()), self._color, self._theme)


def paint_person(painter: QPainter, square: QRectF, color: Color, theme: Theme) -> None:
    """Draw the dot in the middle of `square`: for delegates and buttons."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.person(color) if color else theme.tokens.muted))
    painter.drawEllipse(square.center(), _RADIUS, _RADIUS)
