"""Walks a window with Tab and Shift+Tab, and checks that the focus is visible."""

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from shiboken6 import isValid

from tests.window.accessibility.tree import words_of

_MAX_STOPS = 250
_MAX_LINKS = 5
"""So often Tab may stay in one text, which has links."""

_AROUND = 10  # the frame around a borderless field is outside of it


class TabWalk:
    """`reached` are the widgets that had the focus; `trapped` is one that Tab does not leave.

    `unseen` are those that look the same with and without the focus; `backward` are pairs of neighbours in one
    place where Tab goes against the order of reading. `looked_at` are widgets that earlier walks have seen with the
    focus: they are not looked at again.
    """

    def __init__(self, window: QWidget, looked_at: set[QWidget] | None = None) -> None:
        self._window = window
        self._looked_at = looked_at if looked_at is not None else set[QWidget]()
        self.reached: list[QWidget] = []
        self.words: set[str] = set()
        self.trapped: QWidget | None = None
        self.unseen: list[QWidget] = []
        self.backward: list[tuple[QWidget, QWidget]] = []
        for key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            self._go_round(key)
        self.backward = [pair for pair in self.backward if not self._begins_anew(pair[1])]

    def _go_round(self, key: Qt.Key) -> None:
        start, seen = self._window.focusWidget(), list[QWidget]()
        stays = 0
        for _ in range(_MAX_STOPS):
            QTest.keyClick(self._window.focusWidget() or self._window, key)
            QApplication.processEvents()
            focused = self._window.focusWidget()
            if focused is None:  # pyright: ignore[reportUnnecessaryComparison] -- Qt gives None where nothing has it
                return
            is_same = bool(seen) and focused is seen[-1]
            stays = stays + 1 if is_same else 0
            if stays == _MAX_LINKS or (focused in seen and not is_same):
                self.trapped = self.trapped or (focused if stays and len(seen) > 1 else None)
                return
            if not is_same:
                is_new = focused not in (start, *seen)
                if seen and is_new and key == Qt.Key.Key_Tab and _is_before(focused, seen[-1]):
                    self.backward.append((seen[-1], focused))
                seen.append(focused)
                self._note(focused)

    def _begins_anew(self, widget: QWidget) -> bool:
        """True for the first one in its place: Tab comes there from the last one."""
        stops = [stop for stop in self.reached if isValid(stop) and stop is not widget]
        return not any(_is_before(stop, widget) for stop in stops)

    def _note(self, focused: QWidget) -> None:
        if focused not in self.reached:
            self.reached.append(focused)
            self.words.add(words_of(focused))
            # In menus arrow keys move a marked item.
            if not isinstance(focused, QMenu) and focused not in self._looked_at:
                self._looked_at.add(focused)
                self._look(focused)

    def _look(self, focused: QWidget) -> None:
        area = _around(focused, self._window)
        lit = self._grab(area)
        focused.clearFocus()
        QApplication.processEvents()
        if self._grab(area) == lit:
            self.unseen.append(focused)
        focused.setFocus(Qt.FocusReason.TabFocusReason)
        QApplication.processEvents()

    def _grab(self, area: QRect) -> QImage:
        return self._window.grab(area).toImage()


def _around(widget: QWidget, window: QWidget) -> QRect:
    corner = widget.mapTo(window, QPoint(0, 0))
    return QRect(corner, widget.size()).adjusted(-_AROUND, -_AROUND, _AROUND, _AROUND).intersected(window.rect())


def _is_before(widget: QWidget, other: QWidget) -> bool:
    """Return whether `widget` is read before its sibling `other`: it is above it, or left of it in the same line."""
    if not isValid(other) or widget.parentWidget() is not other.parentWidget():
        return False  # a popup may be made again
    first, second = widget.geometry(), other.geometry()
    is_above = first.bottom() < second.top()
    is_left = first.right() < second.left() and first.bottom() > second.top() and first.top() < second.bottom()
    return is_above or is_left
