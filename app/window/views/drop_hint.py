"""Says over the transcript what becomes of that which is dragged above it."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.window.theme.theme import Theme

_VEIL = 225  # of 255


class DropHint(QWidget):
    """Covers what it is `over` while it is shown; the mouse goes through it."""

    def __init__(self, theme: Theme, over: QWidget) -> None:
        super().__init__(over)
        self._theme = theme
        self._over = over
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def tell(self, text: str) -> None:
        self.setAccessibleName(text)
        self.setGeometry(self._over.rect())
        self.raise_()
        self.show()

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        veil = QColor(tokens.page)
        veil.setAlpha(_VEIL)
        painter.fillRect(self.rect(), veil)
        space = tokens.space_wide
        frame = QRectF(self.rect()).adjusted(space, space, -space, -space)
        painter.setPen(QPen(QColor(tokens.accent), 2, Qt.PenStyle.DashLine))
        painter.setBrush(QColor(tokens.accent_soft))
        painter.drawRoundedRect(frame, tokens.radius_card, tokens.radius_card)
        painter.setPen(QColor(tokens.text))
        painter.setFont(self._theme.font(tokens.size_large, bold=True))
        painter.drawText(frame, Qt.AlignmentFlag.AlignCenter, self.accessibleName())
