"""What a person said: a tinted bubble on the right, as wide as its text."""

from PySide6.QtCore import QRect
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.window.blocks.actions import BlockActions
from app.window.blocks.block import Block
from app.window.blocks.markdown import plain_document
from app.window.blocks.menu import message_markdown
from app.window.blocks.paint import rounded
from app.window.blocks.text_view import TextView
from app.window.rows import Row, UserRow
from app.window.theme.theme import Theme

_WIDEST = 0.8  # of the column


class UserBlock(Block):
    def __init__(self, theme: Theme, actions: BlockActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: UserRow | None = None
        self._text = TextView(theme, "Your message", self)
        self._bubble = QRect()

    def set_row(self, row: Row) -> None:
        assert isinstance(row, UserRow)
        self._row = row
        self._text.show_document(plain_document(row.text.strip("\n"), self.theme))
        self._arrange(self.width())

    def markdown(self) -> str:
        return message_markdown(self._row.node) if self._row else ""

    def height_for(self, width: int) -> int:
        return self._arrange(width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(self.width())

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self.theme.tokens
        rounded(QPainter(self), self._bubble, tokens.radius_card, fill=tokens.bubble)

    def _arrange(self, width: int) -> int:
        """Put bubble and text in their places; the height."""
        tokens = self.theme.tokens
        aside, above = tokens.space_normal, tokens.space_close
        document = self._text.document()
        document.setTextWidth(max(1, int(width * _WIDEST) - 2 * aside))
        wide = int(document.idealWidth()) + 1
        high = self._text.heightForWidth(wide)
        self._bubble = QRect(width - wide - 2 * aside, 0, wide + 2 * aside, high + 2 * above)
        self._text.setGeometry(self._bubble.adjusted(aside, above, -aside, -above))
        self.update()
        return self._bubble.height()
