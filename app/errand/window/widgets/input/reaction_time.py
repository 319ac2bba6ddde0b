"""The time a person needs to see what appeared: input meant for what was there before must not decide anything."""

from time import monotonic

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget

REACTION_S = 0.4


class ReactionTime(QObject):
    """Tells whether `widget` was visible long enough: painted, and 400 ms of the clock have passed since.

    Begins again when the widget is hidden, or when `restart` says that it shows something else. Tests set `clock`,
    which gives seconds.
    """

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._painted_at: float | None = None
        widget.installEventFilter(self)

    @staticmethod
    def clock() -> float:
        return monotonic()

    @property
    def is_over(self) -> bool:
        return self._painted_at is not None and ReactionTime.clock() - self._painted_at >= REACTION_S

    def restart(self) -> None:
        """Wait for the next paint, since the widget shows something else now."""
        self._painted_at = None
        self._widget.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.Paint and self._painted_at is None:
            self._painted_at = ReactionTime.clock()
        elif kind == QEvent.Type.Hide:
            self._painted_at = None
        return False
