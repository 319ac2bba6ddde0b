"""Waits for a window's first paint, so that what takes time begins when there is something to look at."""

import asyncio

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

_LONGEST_S = 0.5


async def first_paint(window: QWidget) -> None:
    """Until `window` was painted, or half a second: one that opens minimised is not."""
    watch = _PaintWatch(window)
    painted = asyncio.Event()
    watch.painted.connect(painted.set)
    try:
        await asyncio.wait_for(painted.wait(), _LONGEST_S)
    except TimeoutError:
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
