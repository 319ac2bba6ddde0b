"""Scroll distances of keys and wheel, smooth scrolling, the scroll bar, the overscan."""

from PySide6.QtCore import QAbstractAnimation, QEasingCurve, QObject, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QScrollBar, QWidget

from app.window.theme.theme import Theme

_NOTCH = 120  # one wheel step in Qt's unit

_MILLISECONDS = 120


def line_height(theme: Theme) -> int:
    """Pixels of one scroll step."""
    return theme.tokens.size_base * 3 // 2


def key_scroll(key: Qt.Key, height: int, line: int) -> int:
    """Pixels down for a key in a view of this height; 0 for a key that does not scroll."""
    page = height - 2 * line
    ways = {
        Qt.Key.Key_Down: 2 * line,
        Qt.Key.Key_Up: -2 * line,
        Qt.Key.Key_PageDown: page,
        Qt.Key.Key_PageUp: -page,
    }
    return ways.get(key, 0)


def wheel_scroll(event: QWheelEvent, line: int) -> int:
    """Pixels down for a wheel event."""
    return -event.angleDelta().y() * 3 * line // _NOTCH


class SmoothScroll(QObject):
    """Emits `moved(pixels)` for each step; a new scroll adds to the remaining distance."""

    moved = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._way = 0
        self._walked = 0
        self._animation = QVariantAnimation(self, duration=_MILLISECONDS, startValue=0.0, endValue=1.0)
        self._animation.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._animation.valueChanged.connect(self._on_value)

    def by(self, pixels: int) -> None:
        left = self._way - self._walked if self._is_walking() else 0
        self.stop()
        if not self._theme.motion:
            self.moved.emit(left + pixels)
            return
        self._way, self._walked = left + pixels, 0
        self._animation.start()

    def stop(self) -> None:
        self._animation.stop()
        self._way = self._walked = 0

    def _is_walking(self) -> bool:
        return self._animation.state() == QAbstractAnimation.State.Running

    def _on_value(self, value: float) -> None:
        step = round(self._way * value) - self._walked
        if step:
            self._walked += step
            self.moved.emit(step)


class ScrollBarSync(QObject):
    """Emits `moved(y)` when the user moves the scroll bar, but not for changes made by `show`."""

    moved = Signal(int)

    def __init__(self, bar: QScrollBar) -> None:
        super().__init__(bar)
        self._bar = bar
        self._is_placing = False
        bar.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        bar.setAccessibleName("Place in the conversation")
        bar.valueChanged.connect(self._on_value)

    def show(self, y: int | None, *, height: int, total: int, line: int) -> None:
        """Set the position to `y`, or to the end; `total` and `height` are in pixels."""
        self._is_placing = True
        self._bar.setPageStep(height)
        self._bar.setSingleStep(line)
        self._bar.setRange(0, max(0, total - height))
        self._bar.setValue(self._bar.maximum() if y is None else y)
        self._is_placing = False

    def _on_value(self, value: int) -> None:
        if not self._is_placing:
            self.moved.emit(value)


def overscan(shown: range, count: int) -> range:
    """The visible rows plus half as many above and below."""
    many = len(shown) // 2 + 1
    return range(max(0, shown.start - many), min(count, shown.stop + many))


def next_to_measure(shown: range, count: int) -> list[int]:
    """The overscan rows that are not visible, nearest first."""
    around = [index for index in overscan(shown, count) if index not in shown]
    return sorted(around, key=lambda index: min(abs(index - shown.start), abs(index - shown.stop)))
