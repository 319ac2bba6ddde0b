"""The selection, over several rows, and dragging it with the mouse."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import QObject, QPoint, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.window.rows.row import RowSource

_END = sys.maxsize

_FRAME_MS = 16
_MOST_AT_ONCE = 40  # pixels for each frame


@dataclass(frozen=True, slots=True)
class SelectionPoint:
    """A place between two characters: of a row, by its key, in the text of that number of its block."""

    key: str
    part: int
    position: int


class TextPosition(NamedTuple):
    """A spot as it stands now: with the number of its row, so that two can be compared."""

    row: int
    part: int
    position: int


@dataclass(frozen=True, slots=True)
class SelectionRange:
    """From the first place to the last one; they differ."""

    first: TextPosition
    last: TextPosition

    @property
    def rows(self) -> range:
        return range(self.first.row, self.last.row + 1)

    def within(self, index: int, part: int, length: int) -> tuple[int, int]:
        """What of a text of this length is in it; twice the same number where nothing is."""
        start, end = TextPosition(index, part, 0), TextPosition(index, part, length)
        first, last = max(start, min(end, self.first)), max(start, min(end, self.last))
        return first.position, last.position

    def covers(self, index: int) -> bool:
        """Whether a row is in it as a whole because it neither begins nor ends in there."""
        begins = self.first.row < index or self.first[1:] == (0, 0)
        ends = index < self.last.row or self.last.part == _END
        return index in self.rows and begins and ends


class Selection:
    """Its ends are kept by row key: rows may come and go around them, and their blocks too."""

    def __init__(self, rows: RowSource) -> None:
        self._rows = rows
        self._anchor: SelectionPoint | None = None
        self._head: SelectionPoint | None = None
        self._indexes: dict[str, int] = {}

    def begin(self, spot: SelectionPoint) -> None:
        self._anchor, self._head = spot, None

    def extend(self, spot: SelectionPoint) -> None:
        """To here, from where it began."""
        if self._anchor is None:
            self._anchor = spot
        self._head = spot

    def take_all(self) -> None:
        """All rows that are loaded."""
        if self._rows.count():
            self._anchor = SelectionPoint(self._rows.row(0).key, 0, 0)
            self._head = SelectionPoint(self._rows.row(self._rows.count() - 1).key, _END, _END)

    def clear(self) -> None:
        self._anchor = self._head = None
        self._indexes.clear()

    def span(self) -> SelectionRange | None:
        """None where nothing is selected, or a row in which it began or ended is no more."""
        if self._anchor is None or self._head is None:
            return None
        anchor, head = self._place(self._anchor), self._place(self._head)
        if anchor is None or head is None or anchor == head:
            return None
        return SelectionRange(min(anchor, head), max(anchor, head))

    def _place(self, spot: SelectionPoint) -> TextPosition | None:
        index = self._index(spot.key)
        return None if index is None else TextPosition(index, spot.part, spot.position)

    def _index(self, key: str) -> int | None:
        """Where it was at the last time; else all rows are looked through, for the ends alone and seldom."""
        known = self._indexes.get(key, -1)
        if 0 <= known < self._rows.count() and self._rows.row(known).key == key:
            return known
        for index in reversed(range(self._rows.count())):
            if self._rows.row(index).key == key:
                self._indexes[key] = index
                return index
        return None


PointAt = Callable[[QPoint], SelectionPoint | None]
SelectionUnit = Callable[[QPoint], tuple[SelectionPoint, SelectionPoint] | None]


class DragSelection(QObject):
    """Points are of the viewport. `changed`: another selection; `scrolled(pixels)` asks for that."""

    changed = Signal()
    scrolled = Signal(int)

    def __init__(self, selection: Selection, spot_at: PointAt, viewport: QWidget) -> None:
        super().__init__(viewport)
        self._selection = selection
        self._spot_at = spot_at
        self._viewport = viewport
        self._pressed: QPoint | None = None
        self._is_dragging = False
        self._point = QPoint()
        self._doubled_at: int | None = None
        self._edge = QTimer(self, interval=_FRAME_MS)
        self._edge.timeout.connect(self._on_edge)

    def press(self, point: QPoint, *, extends: bool) -> None:
        """A click clears what was selected; with Shift it goes on to here."""
        spot = self._spot_at(point)
        if spot is None:
            return
        self._pressed, self._is_dragging = point, extends
        if extends:
            self._selection.extend(spot)
        else:
            self._selection.begin(spot)
        self.changed.emit()

    def move(self, point: QPoint) -> None:
        if self._pressed is None:
            return
        way = (point - self._pressed).manhattanLength()
        if not self._is_dragging and way < QGuiApplication.styleHints().startDragDistance():
            return
        self._is_dragging = True
        self._point = point
        self._follow()
        if self._beyond():
            self._edge.start()
        else:
            self._edge.stop()

    def release(self) -> None:
        self._pressed = None
        self._edge.stop()

    def take(self, ends: tuple[SelectionPoint, SelectionPoint] | None) -> None:
        """Select from one spot to the other: a word, a paragraph."""
        if ends is not None:
            self._selection.begin(ends[0])
            self._selection.extend(ends[1])
            self.changed.emit()

    def doubled(self, timestamp: int) -> None:
        """Remember when: a press soon after is the third one."""
        self._doubled_at = timestamp

    def is_third(self, timestamp: int) -> bool:
        before, self._doubled_at = self._doubled_at, None
        return before is not None and timestamp - before < QGuiApplication.styleHints().mouseDoubleClickInterval()

    def _follow(self) -> None:
        inside = QPoint(self._point.x(), min(max(self._point.y(), 0), self._viewport.height() - 1))
        spot = self._spot_at(inside)
        if spot is not None:
            self._selection.extend(spot)
            self.changed.emit()

    def _beyond(self) -> int:
        """Pixels below the viewport, above it negative."""
        return min(self._point.y(), 0) + max(self._point.y() - self._viewport.height() + 1, 0)

    def _on_edge(self) -> None:
        self.scrolled.emit(min(max(self._beyond(), -_MOST_AT_ONCE), _MOST_AT_ONCE))
        self._follow()
