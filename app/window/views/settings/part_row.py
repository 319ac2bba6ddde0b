"""One part of the data folder: what it is, its size in words, and a bar of its share of the largest."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.client.figures import count, file_size
from app.protocol.data import DataPart
from app.window.theme.look import set_tip
from app.window.theme.theme import Theme
from app.window.widgets.elided_label import ElidedLabel
from app.window.widgets.text_label import TextLabel

_BAR_HEIGHT = 4


class PartRow(QWidget):
    """`largest` is the size of the largest part, in bytes."""

    def __init__(self, theme: Theme, part: DataPart, largest: int) -> None:
        super().__init__()
        head = QHBoxLayout()
        head.setSpacing(theme.tokens.space_normal)
        head.addWidget(TextLabel(theme, part.name, bold=True))
        head.addWidget(ElidedLabel(theme, part.about, tone="muted"), 1)
        head.addWidget(TextLabel(theme, size_words(part)))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_tight)
        column.addLayout(head)
        column.addWidget(ShareBar(theme, part.bytes / largest if largest else 0))
        set_tip(self, part.path)


class ShareBar(QWidget):
    """A thin bar, filled to `share` of its width; the words beside it say the same."""

    def __init__(self, theme: Theme, share: float) -> None:
        super().__init__()
        self._theme = theme
        self._share = min(1.0, max(0.0, share))
        self.setFixedHeight(_BAR_HEIGHT)
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        radius = _BAR_HEIGHT / 2
        painter.setBrush(QColor(tokens.hover))
        painter.drawRoundedRect(QRectF(self.rect()), radius, radius)
        if self._share:
            width = max(_BAR_HEIGHT, self._share * self.width())
            painter.setBrush(QColor(tokens.accent))
            painter.drawRoundedRect(QRectF(0, 0, width, self.height()), radius, radius)


def size_words(part: DataPart) -> str:
    if not part.files:
        return "empty"
    return file_size(part.bytes) if part.files == 1 else f"{file_size(part.bytes)} in {count(part.files, 'file')}"
