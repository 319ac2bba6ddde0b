"""Waits for a window's first paint, so that what takes time begins when there is something to look at."""

from PySide6.QtCore import QEvent, QEventLoop, QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

_LONGEST_MS = 500


def first_paint(window: QWidget) -> None:
    """Until `window` was painted, or half a second: one that opens minimised is not. Clicks and keys wait meanwhile."""
    watch, turns = _PaintWatch(window), QEventLoop()
    watch.painted.connect(turns.quit)
    QTimer.singleShot(_LONGEST_MS, turns.quit)
    turns.exec(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)
    window.removeEventFilter(watch)


class _PaintWatch(QObject):
    painted = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            watched.removeEventFilter(self)
            QTimer.singleShot(0, self.painted.emit)  # the whole window is painted in this turn of the loop
        return False
