"""The look of a diff in a text widget: coloured lines, marked words, and line numbers at the left."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QTextBlock, QTextLine
from PySide6.QtWidgets import QAbstractScrollArea, QPlainTextEdit, QWidget

from errand.window.theme.theme import Theme
from errand.window.widgets.diff.lines import DiffLine, changed_words, paired
from errand.window.widgets.diff.syntax import DiffSyntax
from errand.window.widgets.highlighting import language_of

_BAR = 3
_GROUNDS = {"added": "done_soft", "removed": "failed_soft", "fold": "hover", "end": "hover", "note": "hover"}
_WORDS = {"added": "added_word", "removed": "removed_word"}
_INKS = {"added": "done", "removed": "failed"}

Columns = Literal["both", "old", "new"]


@dataclass(frozen=True, slots=True)
class VisibleBlock:
    """A block of the document that is on screen, and its place in the viewport."""

    block: QTextBlock
    top: float
    height: float


class DiffGutter(QWidget):
    """Shows the line numbers of `edit`, whose blocks are the lines; None stands for an empty row.

    `edit` calls `place` when it is resized, and `paint_grounds` before it paints its text. `visible` yields its blocks.
    Lines get the colours of their language when there is time for it.
    """

    def __init__(
        self,
        theme: Theme,
        edit: QAbstractScrollArea,
        visible: Callable[[], Iterator[VisibleBlock]],
        columns: Columns = "both",
    ) -> None:
        super().__init__(edit)
        self._theme = theme
        self._edit = edit
        self._visible = visible
        self._columns: Columns = columns
        self._lines: Sequence[DiffLine | None] = ()
        self._others: Sequence[DiffLine | None] | None = None
        self._largest = 0
        self._current = -1
        self._syntax = DiffSyntax(theme, lambda: (visible_block.block for visible_block in visible()), self)
        edit.verticalScrollBar().valueChanged.connect(self.update)

    def show_lines(
        self, lines: Sequence[DiffLine | None], others: Sequence[DiffLine | None] | None = None, path: str = ""
    ) -> None:
        """Call it when `edit` has their text. `others` are the lines beside these, on the other side of a diff in two
        columns; `path` names the file."""
        self._lines, self._others = lines, others
        self._syntax.show_lines(lines, language_of(path), has_signs=self._columns == "both")
        self._largest = max(
            (max(line.old, line.new) for line in (*lines, *(others or ())) if line is not None), default=0
        )
        self._edit.updateGeometry()
        self.update()

    def show_current(self, hunk: int) -> None:
        """Mark one hunk with a bar, bright while `edit` has the focus; -1 marks none."""
        self._current = hunk
        self.update()

    @property
    def needed_width(self) -> int:
        """Pixels; 0 for text without line numbers."""
        if not self._largest:
            return 0
        return round(self._column + self._theme.tokens.space_tight) * (2 if self._columns == "both" else 1) + _BAR

    def sizeHint(self) -> QSize:
        return QSize(self.needed_width, 0)

    def place(self) -> None:
        """Stand at the left of the viewport."""
        viewport = self._edit.viewport().geometry()
        width = self.needed_width
        self.setGeometry(viewport.left() - width, viewport.top(), width, viewport.height())

    def paint_grounds(self, painter: QPainter) -> None:
        """Paint the colours below the text of the visible lines, in the viewport of the text."""
        width, visible = self._edit.viewport().width(), tuple(self._visible())
        self._syntax.request(visible_block.block.blockNumber() for visible_block in visible)
        for visible_block in visible:
            line = self._line(visible_block.block.blockNumber())
            if line is None:
                painter.fillRect(QRectF(0, visible_block.top, width, visible_block.height), self._colour("hover"))
                continue
            if line.kind in _GROUNDS:
                painter.fillRect(
                    QRectF(0, visible_block.top, width, visible_block.height), self._colour(_GROUNDS[line.kind])
                )
            if line.kind in _WORDS:
                self._paint_words(painter, visible_block, line)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(self._theme.font(self._theme.tokens.size_small, mono=True))
        bar = "focus" if self._edit.hasFocus() else "edge"
        for visible_block in self._visible():
            line = self._line(visible_block.block.blockNumber())
            kind = line.kind if line is not None else "fold"
            row = QRectF(0, visible_block.top, self.width(), visible_block.height)
            if kind in _GROUNDS:
                painter.fillRect(row, self._colour(_GROUNDS[kind]))
            either_line = line or self._other(visible_block.block.blockNumber())
            if either_line is not None and 0 <= self._current == either_line.hunk:
                painter.fillRect(QRectF(0, visible_block.top, _BAR, visible_block.height), self._colour(bar))
            if line is None:
                continue
            painter.setPen(self._colour(_INKS.get(kind, "muted")))
            self._paint_numbers(painter, visible_block, line)

    def _paint_numbers(self, painter: QPainter, one: VisibleBlock, line: DiffLine) -> None:
        layout = one.block.layout()
        height = layout.lineAt(0).height() if layout.lineCount() > 1 else one.height
        numbers = {"both": (line.old, line.new), "old": (line.old,), "new": (line.new,)}[self._columns]
        left = float(_BAR)
        for number in numbers:
            cell = QRectF(left, one.top, self._column, height)
            left += self._column + self._theme.tokens.space_tight
            if number:
                painter.drawText(cell, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, str(number))

    def _paint_words(self, painter: QPainter, one: VisibleBlock, line: DiffLine) -> None:
        number = one.block.blockNumber()
        other = self._others[number] if self._others is not None else paired(self._lines, number)
        if other is None:
            return
        layout, offset = one.block.layout(), self._edit.horizontalScrollBar().value()
        margin = layout.position().x() - offset
        colour = self._colour(_WORDS[line.kind])
        shift = 0 if self._columns == "both" else 1  # side by side the signs are not shown
        for start, end in changed_words(line.text, other.text):
            start, end = _units(line.text, start) - shift, _units(line.text, end) - shift
            for row in map(layout.lineAt, range(layout.lineCount())):
                first, last = max(start, row.textStart()), min(end, row.textStart() + row.textLength())
                if first < last:
                    left, right = _x(row, first), _x(row, last)
                    painter.fillRect(QRectF(margin + left, one.top + row.y(), right - left, row.height()), colour)

    @property
    def _column(self) -> float:
        metrics = QFontMetricsF(self._theme.font(self._theme.tokens.size_small, mono=True))
        return metrics.horizontalAdvance("0" * max(2, len(str(self._largest)))) + self._theme.tokens.space_tight

    def _line(self, number: int) -> DiffLine | None:
        return self._lines[number] if number < len(self._lines) else None

    def _other(self, number: int) -> DiffLine | None:
        return self._others[number] if self._others is not None and number < len(self._others) else None

    def _colour(self, name: str) -> QColor:
        return QColor(self._theme.colour(name))


def plain_text_blocks(edit: QPlainTextEdit) -> Iterator[VisibleBlock]:
    block, offset, height = edit.firstVisibleBlock(), edit.contentOffset(), edit.viewport().height()
    while block.isValid():
        geometry = edit.blockBoundingGeometry(block).translated(offset)
        if geometry.top() > height:
            break
        # Without the margin below the last line.
        yield VisibleBlock(block, geometry.top(), block.layout().boundingRect().height())
        block = block.next()


def _x(row: QTextLine, at: int) -> float:
    match row.cursorToX(at):  # PySide6 gives the position back with it
        case (float(place), int()):
            return place
        case _:
            raise TypeError


def _units(text: str, at: int) -> int:
    """Return a position in the UTF-16 units that Qt counts."""
    return at if text.isascii() else len(text[:at].encode("utf-16-le", "surrogatepass")) // 2
