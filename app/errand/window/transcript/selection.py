"""The selection across rows, and selecting by dragging the mouse."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import QObject, QPoint, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from errand.window.rows.row_source import RowSource

_PAST_END = sys.maxsize

_FRAME_MS = 16
_MAX_STEP = 40  # pixels per frame


@dataclass(frozen=True, slots=True)
class SelectionPoint:
    """A position between two characters: the row's key, and the index of the text view in the row."""

    key: str
    part: int
    position: int


class TextPosition(NamedTuple):
    """A selection point with the current index of its row, so that two can be compared."""

    row: int
    part: int
    position: int


@dataclass(frozen=True, slots=True)
class SelectionRange:
    """A non-empty range of text positions."""

    first: TextPosition
    last: TextPosition

    @property
    def rows(self) -> range:
        return range(self.first.row, self.last.row + 1)

    def within(self, index: int, part: int, length: int) -> tuple[int, int]:
        """Return the selected part of a text of this length; equal numbers if nothing is selected."""
        start, end = TextPosition(index, part, 0), TextPosition(index, part, length)
        first, last = max(start, min(end, self.first)), max(start, min(end, self.last))
        return first.position, last.position

    def covers(self, index: int) -> bool:
        """Return True if the row is selected completely."""
        begins = self.first.row < index or self.first[1:] == (0, 0)
        ends = index < self.last.row or self.last.part == _PAST_END
        return index in self.rows and begins and ends


class Selection:
    """The selection. Its ends are stored by row key, since rows and their views may change around them."""

    def __init__(self, rows: RowSource) -> None:
        self._rows = rows
        self._anchor: SelectionPoint | None = None
        self._head: SelectionPoint | None = None
        self._indexes: dict[str, int] = {}

    def begin(self, point: SelectionPoint) -> None:
        self._anchor, self._head = point, None

    def extend(self, point: SelectionPoint) -> None:
        """Extend the selection to this point."""
        if self._anchor is None:
            self._anchor = point
        self._head = point

    def select_all(self) -> None:
        """Select all loaded rows."""
        if self._rows.count():
            self._anchor = SelectionPoint(self._rows.row(0).key, 0, 0)
            self._head = SelectionPoint(self._rows.row(self._rows.count() - 1).key, _PAST_END, _PAST_END)

    def clear(self) -> None:
        self._anchor = self._head = None
        self._indexes.clear()

    def span(self) -> SelectionRange | None:
        """Return the selected range; None if nothing is selected, or if the row of an end no longer exists."""
        if self._anchor is None or self._head is None:
            return None
        anchor, head = self._text_position(self._anchor), self._text_position(self._head)
        if anchor is None or head is None or anchor == head:
            return None
        return SelectionRange(min(anchor, head), max(anchor, head))

    def _text_position(self, point: SelectionPoint) -> TextPosition | None:
        index = self._index(point.key)
        return None if index is None else TextPosition(index, point.part, point.position)

    def _index(self, key: str) -> int | None:
        """Return the row's index: the cached one if it is still right, else searched in all rows, which is rare."""
        cached = self._indexes.get(key, -1)
        if 0 <= cached < self._rows.count() and self._rows.row(cached).key == key:
            return cached
        for index in reversed(range(self._rows.count())):
            if self._rows.row(index).key == key:
                self._indexes[key] = index
                return index
        return None


PointAt = Callable[[QPoint], SelectionPoint | None]
SelectionUnit = Callable[[QPoint], tuple[SelectionPoint, SelectionPoint] | None]


class DragSelection(QObject):
    """Selects by dragging, in viewport coordinates. Emits `changed`, and `scrolled(pixels)` to scroll."""

    changed = Signal()
    scrolled = Signal(int)

    def __init__(self, selection: Selection, point_at: PointAt, viewport: QWidget) -> None:
        super().__init__(viewport)
        self._selection = selection
        self._point_at = point_at
        self._viewport = viewport
        self._pressed: QPoint | None = None
        self._is_dragging = False
        self._point = QPoint()
        self._doubled_at: int | None = None
        self._auto_scroll = QTimer(self, interval=_FRAME_MS)
        self._auto_scroll.timeout.connect(self._on_auto_scroll)

    def press(self, point: QPoint, *, extends: bool) -> None:
        """A click clears the selection; with Shift it extends the selection to this point."""
        end = self._point_at(point)
        if end is None:
            return
        self._pressed, self._is_dragging = point, extends
        if extends:
            self._selection.extend(end)
        else:
            self._selection.begin(end)
        self.changed.emit()

    def move(self, point: QPoint) -> None:
        if self._pressed is None:
            return
        distance = (point - self._pressed).manhattanLength()
        if not self._is_dragging and distance < QGuiApplication.styleHints().startDragDistance():
            return
        self._is_dragging = True
        self._point = point
        self._extend_to_pointer()
        if self._distance_outside():
            self._auto_scroll.start()
        else:
            self._auto_scroll.stop()

    def release(self) -> None:
        self._pressed = None
        self._auto_scroll.stop()

    def select(self, ends: tuple[SelectionPoint, SelectionPoint] | None) -> None:
        """Select a unit, such as a word or a paragraph."""
        if ends is not None:
            self._selection.begin(ends[0])
            self._selection.extend(ends[1])
            self.changed.emit()

    def on_double_click(self, timestamp: int) -> None:
        """Remember a double click: a press soon after it is a triple click."""
        self._doubled_at = timestamp

    def is_triple_click(self, timestamp: int) -> bool:
        before, self._doubled_at = self._doubled_at, None
        return before is not None and timestamp - before < QGuiApplication.styleHints().mouseDoubleClickInterval()

    def _extend_to_pointer(self) -> None:
        inside = QPoint(self._point.x(), min(max(self._point.y(), 0), self._viewport.height() - 1))
        end = self._point_at(inside)
        if end is not None:
            self._selection.extend(end)
            self.changed.emit()

    def _distance_outside(self) -> int:
        """Return the distance of the pointer from the viewport: pixels below it, negative above."""
        return min(self._point.y(), 0) + max(self._point.y() - self._viewport.height() + 1, 0)

    def _on_auto_scroll(self) -> None:
        self.scrolled.emit(min(max(self._distance_outside(), -_MAX_STEP), _MAX_STEP))
        self._extend_to_pointer()
