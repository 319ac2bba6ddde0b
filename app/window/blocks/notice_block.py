"""A remark of the engine: muted, with an icon; an error in words and red, to be selected and copied."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.client.characters import plain
from app.protocol.blocks import NoticeKind
from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.blocks.markdown import plain_document
from app.window.blocks.text_view import TextView
from app.window.rows import NoticeRow, Row
from app.window.theme.theme import Theme

_ICONS: dict[NoticeKind, tuple[str, str]] = {
    "stopped": ("circle-stop", "muted"),
    "limit": ("gauge", "waiting_mark"),
    "error": ("circle-alert", "failed_mark"),
    "resumed": ("play", "muted"),
    "interrupted": ("triangle-alert", "waiting_mark"),
    "model": ("refresh-cw", "muted"),
    "permission": ("shield-alert", "muted"),
    "warning": ("triangle-alert", "waiting_mark"),
    "info": ("info", "muted"),
}


class NoticeBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        tokens = theme.tokens
        self._icon = QLabel(self)
        self._icon.setFixedSize(tokens.icon_small, tokens.size_base * 3 // 2)
        self._text = TextView(theme, "Notice", self)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_close, tokens.space_tight, 0, tokens.space_tight)
        row.setSpacing(tokens.space_close)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._text, 1)

    def set_row(self, row: Row) -> None:
        assert isinstance(row, NoticeRow)
        icon, tint = _ICONS[row.notice.kind]
        size = self.theme.tokens.icon_small
        self._icon.setPixmap(self.theme.icon(icon, tint).pixmap(QSize(size, size), self.devicePixelRatioF()))
        colour = "failed" if row.notice.kind == "error" else "muted"
        self._text.show_document(plain_document(plain(row.notice.text).strip(), self.theme, colour=colour))
