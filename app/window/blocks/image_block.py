"""A picture of a message, scaled down to the column."""

import base64
import binascii

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, Qt
from PySide6.QtGui import QImageReader, QPixmap
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.rows import ImageRow, Row
from app.window.theme.look import set_look
from app.window.theme.theme import Theme

_HIGHEST = 480


class ImageBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._picture = QLabel(self)
        self._picture.setFont(theme.font(theme.tokens.size_base))
        set_look(self._picture, "tone", "muted")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignLeft)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, ImageRow)
        ratio = self.devicePixelRatioF()
        picture = _read(row.image.data, QSize(self.theme.tokens.column, _HIGHEST) * ratio)
        if picture is None:
            self._picture.setText(f"This picture ({row.image.media_type}) cannot be shown.")
            self._picture.setAccessibleName(self._picture.text())
            return
        picture.setDevicePixelRatio(ratio)
        self._picture.setPixmap(picture)
        self._picture.setAccessibleName("Picture")


def _read(data: str, most: QSize) -> QPixmap | None:
    """Decoded at the size it is shown in, so that a huge picture costs little; None if it is no picture."""
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    buffer = QBuffer()
    buffer.setData(QByteArray(raw))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer)
    size = reader.size()
    if size.width() > most.width() or size.height() > most.height():
        reader.setScaledSize(size.scaled(most, Qt.AspectRatioMode.KeepAspectRatio))
    image = reader.read()
    return None if image.isNull() else QPixmap.fromImage(image)
