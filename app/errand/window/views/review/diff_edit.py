"""One file's diff: plain text with coloured lines, of which only the visible ones are painted."""

from collections.abc import Sequence
from itertools import accumulate

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit

from errand.client.safe_text import escape_hidden
from errand.protocol.changes import DiffHunk
from errand.window.theme.theme import Theme

_BAR = 3


class DiffEdit(QPlainTextEdit):
    """Read-only. The hunk at the cursor has a bar; `hunk_changed` says that it is another one."""

    hunk_changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._hunks: tuple[DiffHunk, ...] = ()
        self._starts: list[int] = []
        self._marks: list[str] = []
        self._current = -1
        self.setReadOnly(True)
        self.setAccessibleName("Changes of the file")
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.setTextInteractionFlags(self.textInteractionFlags() | self.textInteractionFlags().TextSelectableByKeyboard)
        self.cursorPositionChanged.connect(self._on_cursor_moved)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()

    @property
    def hunk(self) -> DiffHunk | None:
        """The hunk at the cursor."""
        return self._hunks[self._current] if 0 <= self._current < len(self._hunks) else None

    @property
    def position(self) -> tuple[int, int]:
        """The number of the hunk at the cursor, from 1, and how many there are."""
        return self._current + 1, len(self._hunks)

    def show_hunks(self, hunks: Sequence[DiffHunk]) -> None:
        """Show a diff; if it is the one that is shown, the cursor stays."""
        if tuple(hunks) == self._hunks:
            return
        texts = [f"{hunk.header}\n{escape_hidden(hunk.text)}".removesuffix("\n") for hunk in hunks]
        self._hunks = tuple(hunks)
        self._starts = list(accumulate((text.count("\n") + 1 for text in texts), initial=0))[:-1]
        whole = "\n".join(texts)
        self._marks = [line[:1] for line in whole.split("\n")]
        self._current = -1
        self.setPlainText(whole)
        self._on_cursor_moved()

    def step(self, by: int) -> None:
        """Go to the next or previous hunk."""
        index = self._current + by
        if 0 <= index < len(self._starts):
            cursor = QTextCursor(self.document().findBlockByNumber(self._starts[index]))
            self.setTextCursor(cursor)
            self.verticalScrollBar().setValue(self._starts[index])

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        grounds = {"+": tokens.done_soft, "-": tokens.failed_soft, "@": tokens.hover}
        first, last = self._lines_of_current()
        painter = QPainter(self.viewport())
        block, width = self.firstVisibleBlock(), self.viewport().width()
        while block.isValid():
            place = self.blockBoundingGeometry(block).translated(self.contentOffset())
            if place.top() > event.rect().bottom():
                break
            number = block.blockNumber()
            ground = grounds.get(self._marks[number]) if number < len(self._marks) else None
            if ground is not None:
                # Without the margin below the last line.
                height = block.layout().boundingRect().height()
                painter.fillRect(QRectF(0, place.top(), width, height), QColor(ground))
            if first <= number < last:
                painter.fillRect(QRectF(0, place.top(), _BAR, place.height()), QColor(tokens.accent))
            block = block.next()
        painter.end()
        super().paintEvent(event)

    def _lines_of_current(self) -> tuple[int, int]:
        if self._current < 0:
            return 0, 0
        is_last = self._current + 1 == len(self._starts)
        return self._starts[self._current], len(self._marks) if is_last else self._starts[self._current + 1]

    def _on_cursor_moved(self) -> None:
        line = self.textCursor().blockNumber()
        current = sum(start <= line for start in self._starts) - 1
        if current != self._current:
            self._current = current
            self.viewport().update()
        self.hunk_changed.emit()

    def _on_theme_changed(self) -> None:
        self.setFont(self._theme.reading_font(mono=True))
        self.document().setDocumentMargin(self._theme.tokens.space_close)
        self.viewport().update()
