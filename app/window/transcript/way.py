"""How far keys and the wheel scroll the transcript. Home, End and Tab are no ways: see `view` and `focus`."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent

_NOTCH = 120  # what Qt calls one step of a wheel


def key_way(key: Qt.Key, height: int, line: int) -> int:
    """Pixels down for a key in a view of this height; 0 for a key that does not scroll."""
    page = height - 2 * line
    ways = {
        Qt.Key.Key_Down: 2 * line,
        Qt.Key.Key_Up: -2 * line,
        Qt.Key.Key_PageDown: page,
        Qt.Key.Key_PageUp: -page,
    }
    return ways.get(key, 0)


def wheel_way(event: QWheelEvent, line: int) -> int:
    """Pixels down for a step of a wheel."""
    return -event.angleDelta().y() * 3 * line // _NOTCH
