"""An agent's colour as a dot: widget, painted, or icon."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QSizePolicy, QWidget

from errand.protocol.agents import Color
from errand.text.translation import tr
from errand.window.theme.theme import Theme

COLOR_NAMES: dict[Color, str] = {
    "": tr("None"),
    "blue": tr("Blue"),
    "teal": tr("Teal"),
    "green": tr("Green"),
    "amber": tr("Amber"),
    "orange": tr("Orange"),
    "red": tr("Red"),
    "pink": tr("Pink"),
    "violet": tr("Violet"),
    "gray": tr("Gray"),
}
_SIDE, _RADIUS = 10, 4.0

_RATIOS = (1, 2, 3)  # device pixel ratios of standard and high-resolution screens


class AgentDotView(QWidget):
    """Muted for an agent without a colour."""

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
        paint_agent_dot(painter, QRectF(self.rect()), self._color, self._theme)


def paint_agent_dot(painter: QPainter, square: QRectF, color: Color, theme: Theme) -> None:
    """Draw the dot centred in `square`: for delegates and buttons."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.person(color) if color else theme.tokens.muted))
    painter.drawEllipse(square.center(), _RADIUS, _RADIUS)


def agent_icon(color: Color, theme: Theme) -> QIcon:
    icon = QIcon()
    for ratio in _RATIOS:
        icon.addPixmap(_picture(color, theme, ratio))
    return icon


def _picture(color: Color, theme: Theme, ratio: int) -> QPixmap:
    side = theme.tokens.icon_small
    picture = QPixmap(side * ratio, side * ratio)
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    paint_agent_dot(painter, QRectF(0, 0, side, side), color, theme)
    painter.end()
    return picture
