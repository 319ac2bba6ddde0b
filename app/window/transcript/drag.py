"""Selecting with the mouse: press, drag on over other blocks, scroll at the edges, double and triple clicks."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QPoint, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.window.transcript.selection import Selection, Spot

SpotAt = Callable[[QPoint], Spot | None]
Unit = Callable[[QPoint], tuple[Spot, Spot] | None]
_FRAME_MS = 16
_MOST_AT_ONCE = 40  # pixels for each frame


class Drag(QObject):
    """Points are of the viewport. `changed`: another selection; `scrolled(pixels)` asks for that."""

    changed = Signal()
    scrolled = Signal(int)

    def __init__(self, selection: Selection, spot_at: SpotAt, viewport: QWidget) -> None:
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

    def take(self, ends: tuple[Spot, Spot] | None) -> None:
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
