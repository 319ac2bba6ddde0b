"""Image and file attachments of a message."""

from PySide6.QtCore import QSize, Qt, QUrl
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QVBoxLayout, QWidget

from errand.client.conversation.rows import FileRow, ImageRow
from errand.client.number_format import file_size
from errand.client.safe_text import plain
from errand.protocol.blocks import ImageBlock
from errand.text.translation import tr
from errand.window.rows.base import RowActions, RowKind, RowView, Spacing, line_estimate
from errand.window.theme.style import push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.theme.tokens import DesignTokens
from errand.window.widgets.picture_viewer import PictureViewer
from errand.window.widgets.pictures import PictureButton

_MAX_CHARACTERS = 60

_MAX_HEIGHT = 480


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
        short_name = name if len(name) <= _MAX_CHARACTERS else f"{name[: _MAX_CHARACTERS // 2]}…{name[-20:]}"
        self._file.setText(" · ".join(filter(None, (short_name, size))).replace("&", "&&"))
        self._file.setAccessibleName(", ".join(filter(None, (tr("Attached file {name}").format(name=name), size))))
        set_tool_tip(self._file, plain(row.file.path))

    def _on_clicked(self) -> None:
        self.row_actions.open_link(QUrl.fromLocalFile(self._path).toString())


class ImageView(RowView[ImageRow]):
    """A picture as a thumbnail, decoded once it is visible; a click enlarges it."""

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._image: ImageBlock | None = None
        self.picture = PictureButton(theme, self)
        self.picture.clicked.connect(self._on_clicked)
        self.picture.unreadable.connect(self._on_unreadable)
        self._error_label = QLabel(self)
        self._error_label.setTextFormat(Qt.TextFormat.PlainText)  # the text contains the name of the image
        self._error_label.setFont(theme.font(theme.tokens.size_base))
        set_style(self._error_label, "tone", "muted")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self.picture)
        self._column.addWidget(self._error_label)

    def set_row(self, row: ImageRow) -> None:
        self._image = row.image
        is_local = row.node.role == "user"  # messages of people are right-aligned
        side = Qt.AlignmentFlag.AlignRight if is_local else Qt.AlignmentFlag.AlignLeft
        self._column.setAlignment(self.picture, side)
        self._column.setAlignment(self._error_label, side)
        can_be_read = self.picture.show_picture(row.image, plain(row.image.name), _most(row, self.theme.tokens))
        self._show_error(not can_be_read)
        set_tool_tip(self.picture, plain(row.image.name))

    def fill_menu(self, menu: QMenu) -> None:
        if not self.picture.isHidden():
            menu.addAction(tr("Enlarge picture")).triggered.connect(self._on_clicked)

    def _show_error(self, is_error: bool) -> None:
        self.picture.setVisible(not is_error)
        self._error_label.setVisible(is_error)
        if is_error and self._image is not None:
            self._error_label.setText(
                tr("Can't show this picture ({name}).").format(name=plain(self._image.name or self._image.media_type))
            )
            self._error_label.setAccessibleName(self._error_label.text())

    def _on_unreadable(self) -> None:
        self._show_error(True)
        self.resized.emit()

    def _on_clicked(self) -> None:
        assert self._image is not None
        PictureViewer(self._image, self.theme, self.row_actions.copy_picture, self.window()).open()


def _most(row: ImageRow, tokens: DesignTokens) -> QSize:
    """Return the size of a thumbnail: pictures of tools are smaller, since there may be many."""
    return QSize(tokens.column, _MAX_HEIGHT if row.node.role == "assistant" else _MAX_HEIGHT // 2)


IMAGE = RowKind(
    ImageRow,
    ImageView,
    spacing=lambda row: Spacing.ATTACHMENT,
    estimate=lambda row, width, tokens: 12 * tokens.space_far,
    markdown=lambda row, is_open: f"({plain(row.image.name) or tr('a picture')})",
)

FILE = RowKind(
    FileRow,
    FileView,
    spacing=lambda row: Spacing.ATTACHMENT,
    estimate=line_estimate,
    markdown=lambda row, is_open: plain(row.file.path),
)
