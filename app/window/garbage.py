"""Collects Python's garbage in Qt's thread alone.

A collection by itself comes in whatever thread allocates: there it would delete widgets that Qt still has events for.
"""

import gc

from PySide6.QtCore import QObject, QTimer

_LOOK_MS = 5_000


class GarbageCollector(QObject):
    """Takes the place of the automatic collection, with its limits, while it lives."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        timer = QTimer(self)
        timer.setInterval(_LOOK_MS)
        timer.timeout.connect(self.collect)
        timer.start()

    def collect(self) -> None:
        """The oldest generation that is due, as the automatic collection chooses it."""
        due = [
            age
            for age, (count, most) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True))
            if count > most
        ]
        if due:
            gc.collect(due[-1])
