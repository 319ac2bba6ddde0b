"""A box to choose an agent's colour from: each as a dot with its name."""

from typing import get_args

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap

from app.protocol.agents import Color
from app.window.theme.theme import Theme
from app.window.views.settings.choice_box import ChoiceBox
from app.window.widgets.person_dot import paint_person

_COLORS: tuple[Color, ...] = get_args(Color)
_NONE = "none"


class ColorBox(ChoiceBox):
    def __init__(self, theme: Theme) -> None:
        super().__init__(tuple((color or _NONE).capitalize() for color in _COLORS))
        self._theme = theme
        self.setAccessibleName("Colour")
        side = theme.tokens.icon_small
        self.setIconSize(QSize(side, side))
        theme.changed.connect(self._paint)
        self._paint()

    @property
    def color(self) -> Color:
        return _COLORS[self.currentIndex()]

    def choose(self, color: Color) -> None:
        self.setCurrentIndex(_COLORS.index(color))

    def _paint(self) -> None:
        for index, color in enumerate(_COLORS):
            if color:
                self.setItemIcon(index, self._icon(color))

    def _icon(self, color: Color) -> QIcon:
        side, ratio = self._theme.tokens.icon_small, self.devicePixelRatioF()
        picture = QPixmap(round(side * ratio), round(side * ratio))
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        paint_person(painter, QRectF(0, 0, side, side), color, self._theme)
        painter.end()
        return QIcon(picture)
