"""A unified diff: lines added and removed on their own grounds, with their signs, so that colour is not alone."""

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPaintEvent, QTextBlock
from PySide6.QtWidgets import QWidget

from app.client.call_words import without_file_names
from app.client.characters import exact
from app.window.blocks.code_view import CodeView
from app.window.blocks.paint import colour
from app.window.theme.theme import Theme


class DiffView(CodeView):
    def __init__(self, theme: Theme, parent: QWidget | None = None, *, most_lines: int = 0) -> None:
        super().__init__(theme, "Changes", parent, most_lines=most_lines)

    def show_diff(self, diff: str) -> None:
        """The file's names are left out: the card's line has them."""
        self.show_code(exact(without_file_names(diff)).rstrip("\n"), "")

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        block = self.cursorForPosition(self.viewport().rect().topLeft()).block()
        while block.isValid() and self._top(block) < self.viewport().height():
            ground = self._ground(block.text())
            if ground:
                place = QRectF(0, self._top(block), self.viewport().width(), self.line_height())
                painter.fillRect(place, colour(ground))
            block = block.next()
        painter.end()
        super().paintEvent(event)

    def _top(self, block: QTextBlock) -> float:
        return self.document().documentLayout().blockBoundingRect(block).top() - self.verticalScrollBar().value()

    def _ground(self, line: str) -> str:
        tokens = self.theme.tokens
        if line.startswith("+"):
            return tokens.done_soft
        if line.startswith("-"):
            return tokens.failed_soft
        return tokens.hover if line.startswith("@@") else ""
