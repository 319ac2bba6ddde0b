"""An agent's colour as an icon, for menus and lists."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap

from app.protocol.agents import Color
from app.window.theme.theme import Theme
from app.window.widgets.person_dot import paint_person

_RATIOS = (1, 2, 3)  # of usual screens and of finer ones


def person_icon(color: Color, theme: Theme) -> QIcon:
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
    paint_person(painter, QRectF(0, 0, side, side), color, theme)
    painter.end()
    return picture
