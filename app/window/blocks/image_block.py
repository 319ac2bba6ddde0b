"""A picture of a message, scaled down to the column; a click enlarges it."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.protocol.blocks import ImageBlock as ImageContent
from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.blocks.picture import PictureButton, read_picture
from app.window.rows import ImageRow, Row
from app.window.theme.look import set_look, set_tip
from app.window.theme.theme import Theme

_HIGHEST = 480


class ImageBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._image: ImageContent | None = None
        self._picture = PictureButton(theme, self)
        self._picture.clicked.connect(self._on_clicked)
        self._trouble = QLabel(self)
        self._trouble.setTextFormat(Qt.TextFormat.PlainText)  # it names the picture
        self._trouble.setFont(theme.font(theme.tokens.size_base))
        set_look(self._trouble, "tone", "muted")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self._picture)
        self._column.addWidget(self._trouble)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, ImageRow)
        self._image = row.image
        is_own = row.node.role == "user"  # what a person sent stands on the right
        side = Qt.AlignmentFlag.AlignRight if is_own else Qt.AlignmentFlag.AlignLeft
        self._column.setAlignment(self._picture, side)
        self._column.setAlignment(self._trouble, side)
        ratio = self.devicePixelRatioF()
        highest = _HIGHEST // 2 if is_own else _HIGHEST
        picture = read_picture(row.image, QSize(self.theme.tokens.column, highest) * ratio)
        self._picture.setVisible(picture is not None)
        self._trouble.setVisible(picture is None)
        if picture is None:
            self._trouble.setText(f"This picture ({row.image.name or row.image.media_type}) cannot be shown.")
            self._trouble.setAccessibleName(self._trouble.text())
            return
        picture.setDevicePixelRatio(ratio)
        set_tip(self._picture, row.image.path)
        self._picture.show_picture(picture, row.image.name)

    def _on_clicked(self) -> None:
        from app.window.blocks.picture_dialog import PictureDialog  # few are ever enlarged

        assert self._image is not None
        PictureDialog(self._image, self.theme, self.window()).open()
