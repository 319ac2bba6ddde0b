"""One file's diff as text, of which only the visible lines are laid out and painted."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit

from errand.protocol.changes import DiffHunk
from errand.window.theme.theme import Theme
from errand.window.widgets.diff_gutter import DiffGutter, plain_text_blocks
from errand.window.widgets.diff_lines import DiffLine, diff_lines

# Nobody reads further, and Qt lays out a line as a whole.
_LONGEST_LINE = 2_000


class DiffEdit(QPlainTextEdit):
    """Read-only. The hunk at the cursor has a bar; `hunk_changed` says that it is another one."""

    hunk_changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._hunks: tuple[DiffHunk, ...] = ()
        self._lines: list[DiffLine] = []
        self._current = -1
        self._gutter = DiffGutter(theme, self, lambda: plain_text_blocks(self))
        self.setReadOnly(True)
        self.setAccessibleName("Changes of the file")
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.setTextInteractionFlags(self.textInteractionFlags() | self.textInteractionFlags().TextSelectableByKeyboard)
        self.cursorPositionChanged.connect(self._on_cursor_moved)
        self.horizontalScrollBar().valueChanged.connect(self.viewport().update)
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
        self._hunks = tuple(hunks)
        self._lines = diff_lines("".join(f"{hunk.header}\n{hunk.text}" for hunk in hunks), _LONGEST_LINE)
        self._gutter.show_lines(self._lines)
        self._current = -1
        self.setPlainText("\n".join(line.text for line in self._lines))
        self._place_gutter()
        self._on_cursor_moved()

    def step(self, by: int) -> None:
        """Go to the next or previous hunk."""
        wanted = self._current + by
        line = next((at for at, line in enumerate(self._lines) if line.hunk == wanted), None)
        if line is not None and wanted >= 0:
            self.setTextCursor(QTextCursor(self.document().findBlockByNumber(line)))
            self.verticalScrollBar().setValue(line)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._gutter.place()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        self._gutter.paint_grounds(painter)
        painter.end()
        super().paintEvent(event)

    def _place_gutter(self) -> None:
        self.setViewportMargins(self._gutter.needed_width, 0, 0, 0)
        self._gutter.place()

    def _on_cursor_moved(self) -> None:
        number = self.textCursor().blockNumber()
        current = self._lines[number].hunk if number < len(self._lines) else -1
        if current != self._current:
            self._current = current
            self._gutter.show_current(current)
        self.hunk_changed.emit()

    def _on_theme_changed(self) -> None:
        self.setFont(self._theme.reading_font(mono=True))
        self._place_gutter()
        self.viewport().update()
