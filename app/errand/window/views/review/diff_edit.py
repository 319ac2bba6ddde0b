"""One file's diff, or one side of it, as text, of which only the visible lines are laid out and painted."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QCursor,
    QFocusEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextCursor,
)
from PySide6.QtWidgets import QPlainTextEdit

from errand.window.theme.theme import Theme
from errand.window.widgets.diff.gutter import Columns, DiffGutter, plain_text_blocks
from errand.window.widgets.diff.lines import DiffLine

_CHANGES = ("added", "removed")


class DiffEdit(QPlainTextEdit):
    """Read-only. The hunk at the cursor has a bar; `hunk_changed` says that it is another one.

    `hovered` gives the hunk under the pointer, -1 for none. `menu_requested` gives the event and the line.
    """

    hunk_changed = Signal()
    hovered = Signal(int)
    menu_requested = Signal(object, object)

    def __init__(self, theme: Theme, name: str, columns: Columns = "both") -> None:
        super().__init__()
        self._theme = theme
        self._columns: Columns = columns
        self._lines: Sequence[DiffLine | None] = ()
        self._others: Sequence[DiffLine | None] = ()
        self._gutter = DiffGutter(theme, self, lambda: plain_text_blocks(self), columns)
        self.current = -1
        self.setReadOnly(True)
        self.setAccessibleName(name)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.setTextInteractionFlags(self.textInteractionFlags() | self.textInteractionFlags().TextSelectableByKeyboard)
        self.viewport().setMouseTracking(True)
        self.viewport().setAutoFillBackground(False)  # the colour of the page, as below the line numbers
        self.cursorPositionChanged.connect(self._on_cursor_moved)
        self.horizontalScrollBar().valueChanged.connect(self.viewport().update)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()

    @property
    def line(self) -> DiffLine | None:
        """The line at the cursor; where this side has none, the one beside it."""
        return self._line_in(self.textCursor().blockNumber())

    def show_lines(
        self,
        lines: Sequence[DiffLine | None],
        others: Sequence[DiffLine | None] | None,
        path: str,
        *,
        keeps_place: bool,
    ) -> None:
        """`others` are the lines beside these, `path` names the file.

        With `keeps_place` the same lines stay in sight, if they still exist.
        """
        top, at = self._place(self.firstVisibleBlock().blockNumber()), self._place(self.textCursor().blockNumber())
        self._lines, self._others = lines, others or ()
        self.current = -1
        self.blockSignals(True)
        self.setPlainText("\n".join(self._text(line) for line in lines))
        self._gutter.show_lines(lines, others, path)
        self._place_gutter()
        if keeps_place:
            self.go_to(self._row_of(*at))
            self.verticalScrollBar().setValue(self._row_of(*top))
        self.blockSignals(False)
        self._on_cursor_moved()

    def go_to(self, row: int) -> None:
        """Put the cursor on a row."""
        self.setTextCursor(QTextCursor(self.document().findBlockByNumber(row)))

    def go_to_hunk(self, hunk: int) -> None:
        """Put the cursor on the first change of a hunk, with what is above it in sight."""
        lines = [(row, self._line_in(row)) for row in range(len(self._lines))]
        rows = [(row, line.kind) for row, line in lines if line is not None and line.hunk == hunk]
        if rows:
            self.go_to(next((row for row, kind in rows if kind in _CHANGES), rows[0][0]))
            self.verticalScrollBar().setValue(rows[0][0])

    def top_of(self, hunk: int) -> float | None:
        """Return the top of the visible part of a hunk in the viewport; None if it is out of sight."""
        for visible_block in plain_text_blocks(self):
            line = self._line_in(visible_block.block.blockNumber())
            if line is not None and line.hunk == hunk:
                return max(0.0, visible_block.top)
        return None

    @property
    def hunk_under_pointer(self) -> int:
        """-1 for none."""
        cursor_point = self.viewport().mapFromGlobal(QCursor.pos())
        return self._hunk_at(QPointF(cursor_point)) if self.viewport().rect().contains(cursor_point) else -1

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._gutter.place()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        self._gutter.paint_grounds(painter)
        painter.end()
        super().paintEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._gutter.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._gutter.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self.hovered.emit(self._hunk_at(event.position()))

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self.hovered.emit(-1)
        return super().viewportEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the menu for the line under the mouse, which gets the cursor, or for the line at the cursor."""
        if event.reason() == QContextMenuEvent.Reason.Mouse and not self.textCursor().hasSelection():
            self.go_to(self.cursorForPosition(event.pos()).blockNumber())
        self.menu_requested.emit(event, self.line)

    def _line_in(self, row: int) -> DiffLine | None:
        line = self._lines[row] if row < len(self._lines) else None
        return self._others[row] if line is None and row < len(self._others) else line

    def _text(self, line: DiffLine | None) -> str:
        """Side by side the colours say what the signs do."""
        if line is None:
            return ""
        has_sign = self._columns != "both" and line.kind in (*_CHANGES, "context")
        return line.text[1:] if has_sign else line.text

    def _place(self, row: int) -> tuple[int, int, int]:
        """Return a row by the numbers of the next line that has some, and how many rows above that it is."""
        for below, line_number in enumerate(range(row, len(self._lines))):
            line = self._line_in(line_number)
            if line is not None and (line.old or line.new):
                return line.old, line.new, below
        return 0, 0, 0

    def _row_of(self, old: int, new: int, above: int) -> int:
        """Return the row of a place; if it is not there any more, that of the line that follows."""
        if not (old or new):
            return 0
        rows = ((row, self._line_in(row)) for row in range(len(self._lines)))
        matching_rows = (
            row
            for row, diff_line in rows
            if diff_line and (diff_line.new >= new > 0 or (not new and diff_line.old >= old > 0))
        )
        return max(0, next(matching_rows, len(self._lines) - 1) - above)

    def _hunk_at(self, place: QPointF) -> int:
        line = self._line_in(self.cursorForPosition(place.toPoint()).blockNumber())
        return line.hunk if line is not None else -1

    def _place_gutter(self) -> None:
        self.setViewportMargins(self._gutter.needed_width, 0, 0, 0)
        self._gutter.place()

    def _on_cursor_moved(self) -> None:
        line = self.line
        current = line.hunk if line is not None else self.current
        if current != self.current:
            self.current = current
            self._gutter.show_current(current)
            self.hunk_changed.emit()

    def _on_theme_changed(self) -> None:
        self.setFont(self._theme.reading_font(mono=True))
        self._place_gutter()
        self.viewport().update()


def link_scrolling(left: QPlainTextEdit, right: QPlainTextEdit) -> None:
    """Let two texts scroll together, and both or none have a horizontal scroll bar."""
    for scrolled_edit, other in ((left, right), (right, left)):
        scrolled_edit.verticalScrollBar().valueChanged.connect(other.verticalScrollBar().setValue)
        scrolled_edit.horizontalScrollBar().valueChanged.connect(other.horizontalScrollBar().setValue)
