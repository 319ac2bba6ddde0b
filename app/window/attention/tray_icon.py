"""The app icon with the number of what waits in its corner, as trays want it: small and in several sizes."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QIcon, QPainter, QPixmap

from app.window.theme.icons import app_icon
from app.window.theme.tokens import DARK

_SIDES = (16, 22, 24, 32, 48, 64)
_BADGE = 0.62
"""Of the icon's side: at 16 px a digit is 8 px high, which is as small as it can be read."""
_MOST = 9


def tray_icon(waiting: int) -> QIcon:
    """In one amber for all themes: a tray has its own ground, which nobody tells us."""
    plain = app_icon()
    if not waiting:
        return plain
    text = str(waiting) if waiting <= _MOST else f"{_MOST}+"
    icon = QIcon()
    for side in _SIDES:
        icon.addPixmap(_with_badge(plain.pixmap(side, side), side, text))
    return icon


def _with_badge(plain: QPixmap, side: int, text: str) -> QPixmap:
    picture = QPixmap(side, side)
    picture.fill(Qt.GlobalColor.transparent)
    height = round(side * _BADGE)
    width = height if len(text) == 1 else round(height * 1.35)
    place = QRectF(side - width, side - height, width, height)
    font = QFont()
    font.setPixelSize(round(height * 0.85))
    font.setBold(True)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.drawPixmap(0, 0, side, side, plain)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(DARK.waiting))
    painter.drawRoundedRect(place, height / 2, height / 2)
    painter.setPen(QColor(DARK.page))
    painter.setFont(font)
    painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)
    painter.end()
    return picture
