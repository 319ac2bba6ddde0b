"""A picture of a message, scaled down to the column."""

import base64
import binascii
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, Qt
from PySide6.QtGui import QImageReader, QPixmap
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.protocol.blocks import ImageBlock as ImageContent
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
        column.addWidget(self._picture)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, ImageRow)
        sides = Qt.AlignmentFlag
        is_own = row.node.role == "user"  # what a person sent stands on the right
        self._picture.setAlignment(sides.AlignRight if is_own else sides.AlignLeft)
        ratio = self.devicePixelRatioF()
        highest = _HIGHEST // 2 if is_own else _HIGHEST
        picture = _read(row.image, QSize(self.theme.tokens.column, highest) * ratio)
        name = row.image.name or row.image.media_type
        self._picture.setToolTip(row.image.path)
        if picture is None:
            self._picture.setText(f"This picture ({name}) cannot be shown.")
            self._picture.setAccessibleName(self._picture.text())
            return
        picture.setDevicePixelRatio(ratio)
        self._picture.setPixmap(picture)
        self._picture.setAccessibleName(f"Picture {row.image.name}".strip())


def _read(image: ImageContent, most: QSize) -> QPixmap | None:
    """Decoded at the size it is shown in, so that a huge picture costs little; None if it is no picture."""
    try:
        raw = Path(image.path).read_bytes() if image.path else base64.b64decode(image.data, validate=True)
    except (OSError, binascii.Error, ValueError):
        return None
    buffer = QBuffer()
    buffer.setData(QByteArray(raw))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer)
    size = reader.size()
    if size.width() > most.width() or size.height() > most.height():
        reader.setScaledSize(size.scaled(most, Qt.AspectRatioMode.KeepAspectRatio))
    read = reader.read()
    return None if read.isNull() else QPixmap.fromImage(read)
