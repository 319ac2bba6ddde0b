"""A card: a raised ground with a hairline around it, and a margin of colour where its state matters."""

from typing import Literal

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.window.theme.theme import Theme

CardTone = Literal["plain", "waiting", "failed", "done"]
_MARKS: dict[CardTone, str] = {"waiting": "waiting_mark", "failed": "failed_mark", "done": "done_mark"}
_MARGIN = 3


class Card(QWidget):
    """Put what it holds into `body`."""

    def __init__(self, theme: Theme, tone: CardTone = "plain") -> None:
        super().__init__()
        self._theme = theme
        self._tone: CardTone = tone
        space = theme.tokens.space_wide
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(space, theme.tokens.space_normal, space, theme.tokens.space_normal)
        self.body.setSpacing(theme.tokens.space_close)
        theme.changed.connect(self.update)

    def set_tone(self, tone: CardTone) -> None:
        self._tone = tone
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outline = QPainterPath()
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        outline.addRoundedRect(frame, tokens.radius_card, tokens.radius_card)
        painter.fillPath(outline, QColor(tokens.raised))
        mark = _MARKS.get(self._tone)
        if mark is not None:
            painter.setClipPath(outline)
            painter.fillRect(QRectF(0, 0, _MARGIN, self.height()), QColor(self._theme.colour(mark)))
            painter.setClipping(False)
        painter.setPen(QPen(QColor(tokens.outline if tokens.dark else tokens.hairline), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(outline)
