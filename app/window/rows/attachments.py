"""Image and file attachments of a message."""

import base64
import binascii
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, Qt, QUrl
from PySide6.QtGui import QImageReader, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QAbstractButton, QDialog, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.client.number_format import file_size
from app.client.safe_text import plain
from app.protocol.blocks import ImageBlock
from app.protocol.blocks import ImageBlock as ImageContent
from app.regular_file import read_regular
from app.window.rows.base import RowActions, RowKind, RowView, Spacing, line_estimate
from app.window.rows.row import FileRow, ImageRow
from app.window.theme.style import paint_focus_ring, push_button, set_style, set_tool_tip
from app.window.theme.theme import Theme

_MAX_CHARACTERS = 60

# The maximum size of an attached image, in bytes.
_MAX_BYTES = 10 * 1024 * 1024

_MAX_HEIGHT = 480

_SCREEN_SHARE = 0.85


class FileView(RowView[FileRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        side = theme.tokens.icon_small
        self._path = ""
        self._file = push_button("", "quiet")
        self._file.setIcon(theme.icon("paperclip", "muted"))
        self._file.setIconSize(QSize(side, side))
        self._file.clicked.connect(self._on_clicked)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._file, 0, Qt.AlignmentFlag.AlignRight)

    def set_row(self, row: FileRow) -> None:
        self._path = row.file.path
        name, size = plain(row.file.name), file_size(row.file.size) if row.file.size else ""
        shown = name if len(name) <= _MAX_CHARACTERS else f"{name[: _MAX_CHARACTERS // 2]}…{name[-20:]}"
        self._file.setText(" · ".join(filter(None, (shown, size))).replace("&", "&&"))
        self._file.setAccessibleName(", ".join(filter(None, (f"Attached file {name}", size))))
        set_tool_tip(self._file, plain(row.file.path))

    def _on_clicked(self) -> None:
        self.row_actions.open_link(QUrl.fromLocalFile(self._path).toString())


class ImageThumbnailView(QAbstractButton):
    """As large as its image; scaled down in a narrower column."""

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
            paint_focus_ring(painter, self.rect(), self._theme.tokens, self._theme.tokens.radius_control)


def read_image(image: ImageBlock, most: QSize) -> QPixmap | None:
    """Decode the image at its display size, so that a huge image is cheap; None if it is not a valid image."""
    try:
        raw = read_regular(Path(image.path), _MAX_BYTES) if image.path else base64.b64decode(image.data, validate=True)
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


class ImageView(RowView[ImageRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._image: ImageContent | None = None
        self._picture = ImageThumbnailView(theme, self)
        self._picture.clicked.connect(self._on_clicked)
        self._error_label = QLabel(self)
        self._error_label.setTextFormat(Qt.TextFormat.PlainText)  # the text contains the name of the image
        self._error_label.setFont(theme.font(theme.tokens.size_base))
        set_style(self._error_label, "tone", "muted")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self._picture)
        self._column.addWidget(self._error_label)

    def set_row(self, row: ImageRow) -> None:
        self._image = row.image
        is_local = row.node.role == "user"  # messages of people are right-aligned
        side = Qt.AlignmentFlag.AlignRight if is_local else Qt.AlignmentFlag.AlignLeft
        self._column.setAlignment(self._picture, side)
        self._column.setAlignment(self._error_label, side)
        ratio = self.devicePixelRatioF()
        highest = _MAX_HEIGHT // 2 if is_local else _MAX_HEIGHT
        picture = read_image(row.image, QSize(self.theme.tokens.column, highest) * ratio)
        self._picture.setVisible(picture is not None)
        self._error_label.setVisible(picture is None)
        if picture is None:
            self._error_label.setText(f"This picture ({row.image.name or row.image.media_type}) cannot be shown.")
            self._error_label.setAccessibleName(self._error_label.text())
            return
        picture.setDevicePixelRatio(ratio)
        set_tool_tip(self._picture, row.image.path)
        self._picture.show_picture(picture, row.image.name)

    def _on_clicked(self) -> None:
        assert self._image is not None
        ImageDialog(self._image, self.theme, self.window()).open()


class ImageDialog(QDialog):
    def __init__(self, image: ImageBlock, theme: Theme, over: QWidget) -> None:
        super().__init__(over)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(image.name or "Picture")
        ratio = self.devicePixelRatioF()
        picture = read_image(image, over.screen().availableSize() * _SCREEN_SHARE * ratio)
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


IMAGE = RowKind(
    ImageRow,
    ImageView,
    spacing=lambda row: Spacing.ATTACHMENT,
    estimate=lambda row, width, tokens: 12 * tokens.space_far,
    markdown=lambda row, is_open: "(a picture)",
)

FILE = RowKind(
    FileRow,
    FileView,
    spacing=lambda row: Spacing.ATTACHMENT,
    estimate=line_estimate,
    markdown=lambda row, is_open: plain(row.file.path),
)
