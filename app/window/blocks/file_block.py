"""A file that a person attached: its name and size under the bubble on the right, opened by a click."""

from PySide6.QtCore import QSize, Qt, QUrl
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.client.characters import plain
from app.client.figures import file_size
from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.rows import FileRow, Row
from app.window.theme.look import push_button, set_tip
from app.window.theme.theme import Theme

_MOST_CHARACTERS = 60


class FileBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
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

    def set_row(self, row: Row) -> None:
        assert isinstance(row, FileRow)
        self._path = row.file.path
        name, size = plain(row.file.name), file_size(row.file.size) if row.file.size else ""
        shown = name if len(name) <= _MOST_CHARACTERS else f"{name[: _MOST_CHARACTERS // 2]}…{name[-20:]}"
        self._file.setText(" · ".join(filter(None, (shown, size))).replace("&", "&&"))
        self._file.setAccessibleName(", ".join(filter(None, (f"Attached file {name}", size))))
        set_tip(self._file, plain(row.file.path))

    def _on_clicked(self) -> None:
        self.intents.open_link(QUrl.fromLocalFile(self._path).toString())
