"""A picture by itself, as large as it is or as the screen allows; Esc closes it."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QLabel, QVBoxLayout, QWidget

from app.protocol.blocks import ImageBlock
from app.window.blocks.picture import read_picture
from app.window.theme.look import push_button
from app.window.theme.theme import Theme

_OF_SCREEN = 0.85


class PictureDialog(QDialog):
    def __init__(self, image: ImageBlock, theme: Theme, over: QWidget) -> None:
        super().__init__(over)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(image.name or "Picture")
        ratio = self.devicePixelRatioF()
        picture = read_picture(image, over.screen().availableSize() * _OF_SCREEN * ratio)
        label = QLabel()
        label.setAccessibleName(f"Picture {image.name}".strip())
        if picture is None:
            label.setText("This picture is no longer there.")
        else:
            picture.setDevicePixelRatio(ratio)
            label.setPixmap(picture)
        close = push_button("Close")
        close.clicked.connect(self.close)
        space = theme.tokens.space_wide
        column = QVBoxLayout(self)
        column.setContentsMargins(space, space, space, space)
        column.setSpacing(theme.tokens.space_normal)
        column.addWidget(label, 1, Qt.AlignmentFlag.AlignCenter)
        column.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)
