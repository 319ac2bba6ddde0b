"""A picture as a button that enlarges it, and how pictures are read."""

import base64
import binascii
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, Qt
from PySide6.QtGui import QImageReader, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.protocol.blocks import ImageBlock
from app.regular_file import read_regular
from app.window.blocks.paint import focus_ring
from app.window.theme.theme import Theme

# As much as is attached at most.
_LARGEST = 10 * 1024 * 1024


class PictureButton(QAbstractButton):
    """As large as its picture; in a narrower column it is scaled down."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._picture = QPixmap()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_picture(self, picture: QPixmap, name: str) -> None:
        self._picture = picture
        self.setAccessibleName(f"Picture {name}, enlarge" if name else "Picture, enlarge")
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return self._picture.deviceIndependentSize().toSize()

    def minimumSizeHint(self) -> QSize:
        return QSize(1, 1)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        wanted = self.sizeHint()
        return wanted.height() if width >= wanted.width() else round(wanted.height() * width / max(1, wanted.width()))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawPixmap(self.rect(), self._picture)
        if self.hasFocus():
            focus_ring(painter, self.rect(), self._theme.tokens, self._theme.tokens.radius_control)


def read_picture(image: ImageBlock, most: QSize) -> QPixmap | None:
    """Decoded at the size it is shown in, so that a huge picture costs little; None if it is no picture."""
    try:
        raw = read_regular(Path(image.path), _LARGEST) if image.path else base64.b64decode(image.data, validate=True)
    except (OSError, binascii.Error, ValueError):
        return None
    buffer = QBuffer()
    buffer.setData(QByteArray(raw))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer)
    reader.setAutoTransform(True)
    size = reader.size()
    if size.width() > most.width() or size.height() > most.height():
        reader.setScaledSize(size.scaled(most, Qt.AspectRatioMode.KeepAspectRatio))
    read = reader.read()
    return None if read.isNull() else QPixmap.fromImage(read)
