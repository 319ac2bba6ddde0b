"""Scroll distances of keys and wheel, smooth scrolling, the scroll bar, the overscan."""

from PySide6.QtCore import QAbstractAnimation, QEasingCurve, QObject, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QScrollBar, QWidget

from errand.text.translation import tr
from errand.window.theme.theme import Theme

_NOTCH = 120  # one wheel step in Qt's unit

_MILLISECONDS = 120


def line_height(theme: Theme) -> int:
    """Pixels of one scroll step."""
    return theme.tokens.size_base * 3 // 2


def key_scroll(key: Qt.Key, height: int, line: int) -> int:
    """Pixels down for a key in a view of this height; 0 for a key that does not scroll."""
    page = max(line, height - 2 * line)
    distances = {
        Qt.Key.Key_Down: 2 * line,
        Qt.Key.Key_Up: -2 * line,
        Qt.Key.Key_PageDown: page,
        Qt.Key.Key_PageUp: -page,
    }
    return distances.get(key, 0)


def wheel_scroll(event: QWheelEvent, line: int) -> int:
    """Pixels down for a wheel event."""
    return -event.angleDelta().y() * 3 * line // _NOTCH


class SmoothScroll(QObject):
    """Emits `moved(pixels)` for each step; a new scroll adds to the remaining distance."""

    moved = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._distance = 0
        self._scrolled = 0
        self._animation = QVariantAnimation(self, duration=_MILLISECONDS, startValue=0.0, endValue=1.0)
        self._animation.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._animation.valueChanged.connect(self._on_value)

    def scroll_by(self, pixels: int) -> None:
        remaining = self._distance - self._scrolled if self._is_running() else 0
        self.stop()
        if not self._theme.motion:
            self.moved.emit(remaining + pixels)
            return
        self._distance, self._scrolled = remaining + pixels, 0
        self._animation.start()

    def stop(self) -> None:
        self._animation.stop()
        self._distance = self._scrolled = 0

    def _is_running(self) -> bool:
        return self._animation.state() == QAbstractAnimation.State.Running

    def _on_value(self, value: float) -> None:
        step = round(self._distance * value) - self._scrolled
        if step:
            self._scrolled += step
            self.moved.emit(step)


class ScrollBarSync(QObject):
    """Emits `moved(y)` when the user moves the scroll bar, but not for changes made by `update`."""

    moved = Signal(int)

    def __init__(self, bar: QScrollBar) -> None:
        super().__init__(bar)
        self._bar = bar
        self._is_updating = False
        bar.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        bar.setAccessibleName(tr("Position in the conversation"))
        bar.valueChanged.connect(self._on_value)

    def update(self, y: int | None, *, height: int, total: int, line: int) -> None:
        """Set the position to `y`, or to the end; `total` and `height` are in pixels."""
        self._is_updating = True
        self._bar.setPageStep(height)
        self._bar.setSingleStep(line)
        self._bar.setRange(0, max(0, total - height))
        self._bar.setValue(self._bar.maximum() if y is None else y)
        self._is_updating = False

    def _on_value(self, value: int) -> None:
        if not self._is_updating:
            self.moved.emit(value)


def overscan(shown: range, count: int) -> range:
    """Return the visible rows plus half as many above and below."""
    extra = len(shown) // 2 + 1
    return range(max(0, shown.start - extra), min(count, shown.stop + extra))


def next_to_measure(shown: range, count: int) -> list[int]:
    """Return the overscan rows that are not visible, nearest first."""
    around = [index for index in overscan(shown, count) if index not in shown]
    return sorted(around, key=lambda index: min(abs(index - shown.start), abs(index - shown.stop)))
