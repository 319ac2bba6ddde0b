"""One attached file: its picture or an icon, its name, its size, and a button to take it away again."""

from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPixmap
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from app.client.figures import file_size
from app.protocol.blocks import ImageBlock
from app.window.blocks.picture import read_picture
from app.window.theme.look import set_tip
from app.window.theme.theme import Theme
from app.window.widgets.elided_label import ElidedLabel
from app.window.widgets.icon_button import IconButton
from app.window.widgets.text_label import TextLabel

_REMOVERS = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)


class AttachmentChip(QFrame):
    """`removed` at its button, Del or Backspace."""

    removed = Signal()

    def __init__(self, theme: Theme, path: str) -> None:
        super().__init__()
        self.setObjectName("chip")
        self.path = path
        self._theme = theme
        tokens = theme.tokens
        self._picture = QLabel()
        name = ElidedLabel(theme, Path(path).name, size=tokens.size_small, mode=Qt.TextElideMode.ElideMiddle)
        name.setMaximumWidth(tokens.column // 4)
        words = _size_of(path)
        self.button = IconButton(theme, "x", f"Remove {Path(path).name}")
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_close, 0, 0, 0)
        row.setSpacing(tokens.space_close)
        row.addWidget(self._picture)
        row.addWidget(name)
        row.addWidget(TextLabel(theme, words, size=tokens.size_small, tone="muted"))
        row.addWidget(self.button)
        self.setAccessibleName(f"Attached: {Path(path).name}, {words}")
        set_tip(self, path)
        self.button.clicked.connect(self.removed)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _REMOVERS:
            self.removed.emit()
        else:
            super().keyPressEvent(event)

    def _on_theme_changed(self) -> None:
        side = self._theme.tokens.icon_large
        ratio = self.devicePixelRatio()
        thumbnail = _thumbnail(self.path, round(side * ratio))
        if thumbnail is None:
            self._picture.setPixmap(self._theme.icon("file", "muted").pixmap(QSize(side, side), ratio))
        else:
            thumbnail.setDevicePixelRatio(ratio)
            self._picture.setPixmap(thumbnail)


def _thumbnail(path: str, side: int) -> QPixmap | None:
    """Decoded at the size it is shown in; None if the file is no picture."""
    return read_picture(ImageBlock(media_type="", path=path), QSize(side, side))


def _size_of(path: str) -> str:
    try:
        return file_size(Path(path).stat().st_size)
    except OSError:
        return "gone"
