"""Walks a window with Tab and Shift+Tab, and checks that the focus is visible."""

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from tests.window.accessibility.tree import words_of

_MOST_STOPS = 250
_MOST_LINKS = 5
"""So often Tab may stay in one text, which has links."""

_AROUND = 10  # the frame around a borderless field is outside of it


class TabWalk:
    """`reached` are the widgets that had the focus; `trapped` is one that Tab does not leave.

    `unseen` are those that look the same with and without the focus.
    """

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self.reached: list[QWidget] = []
        self.words: set[str] = set()
        self.trapped: QWidget | None = None
        self.unseen: list[QWidget] = []
        for key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            self._go_round(key)

    def _go_round(self, key: Qt.Key) -> None:
        seen: list[QWidget] = []
        stays = 0
        for _ in range(_MOST_STOPS):
            QTest.keyClick(self._window.focusWidget() or self._window, key)
            QApplication.processEvents()
            focused = self._window.focusWidget()
            if focused is None:  # pyright: ignore[reportUnnecessaryComparison] -- Qt gives None where nothing has it
                return
            is_same = bool(seen) and focused is seen[-1]
            stays = stays + 1 if is_same else 0
            if stays == _MOST_LINKS or (focused in seen and not is_same):
                self.trapped = self.trapped or (focused if stays and len(seen) > 1 else None)
                return
            if not is_same:
                seen.append(focused)
                self._note(focused)

    def _note(self, focused: QWidget) -> None:
        if focused not in self.reached:
            self.reached.append(focused)
            self.words.add(words_of(focused))
            if not isinstance(focused, QMenu):  # containers in which arrow keys move a marked item
                self._look(focused)

    def _look(self, focused: QWidget) -> None:
        place = _around(focused, self._window)
        lit = self._grab(place)
        focused.clearFocus()
        QApplication.processEvents()
        if self._grab(place) == lit:
            self.unseen.append(focused)
        focused.setFocus(Qt.FocusReason.TabFocusReason)
        QApplication.processEvents()

    def _grab(self, place: QRect) -> QImage:
        return self._window.grab(place).toImage()


def _around(widget: QWidget, window: QWidget) -> QRect:
    corner = widget.mapTo(window, QPoint(0, 0))
    return QRect(corner, widget.size()).adjusted(-_AROUND, -_AROUND, _AROUND, _AROUND).intersected(window.rect())
