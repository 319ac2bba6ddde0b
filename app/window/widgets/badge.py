"""A count in a pill: unread messages, waiting asks. Nothing is drawn at zero."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.window.theme.theme import Theme

_MOST = 99


class Badge(QWidget):
    """`noun` is what is counted, for the accessible name: "3 unread"."""

    def __init__(self, theme: Theme, noun: str, *, waiting: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._noun = noun
        self._waiting = waiting
        self._count = 0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_count(0)
        theme.changed.connect(self.update)

    def set_count(self, count: int) -> None:
        self._count = count
        self.setAccessibleName(f"{count} {self._noun}")
        self.setVisible(count > 0)
        self.updateGeometry()
        self.update()

    @property
    def text(self) -> str:
        return f"{_MOST}+" if self._count > _MOST else str(self._count)

    def sizeHint(self) -> QSize:
        self.setFont(self._theme.font(self._theme.tokens.size_small, bold=True))
        height = self._theme.tokens.size_small + self._theme.tokens.space_tight + 2
        width = self.fontMetrics().horizontalAdvance(self.text) + self._theme.tokens.space_normal
        return QSize(max(height, width), height)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tokens.waiting_soft if self._waiting else tokens.accent))
        radius = self.height() / 2
        painter.drawRoundedRect(QRectF(self.rect()), radius, radius)
        painter.setPen(QColor(tokens.waiting if self._waiting else tokens.on_accent))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.text)
