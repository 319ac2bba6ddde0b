"""The single timer of all pulsing widgets; off if motion is off."""

import math
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QWidget

from errand.window.theme.theme import Theme

_FRAME_MS = 66
_PERIOD_S = 1.6
_MIN_STRENGTH = 0.35


class PulseTimer(QObject):
    """Repaints its followers about 15 times a second; `strength` is 0.35 to 1, and 1 without motion."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._followers: list[QWidget] = []
        self._timer = QTimer(self)
        self._timer.setInterval(_FRAME_MS)
        self._timer.timeout.connect(self._on_timeout)
        theme.changed.connect(self._on_theme_changed)

    @property
    def strength(self) -> float:
        if not self._theme.motion:
            return 1.0
        wave = (1 + math.cos(2 * math.pi * time.monotonic() / _PERIOD_S)) / 2
        return _MIN_STRENGTH + (1 - _MIN_STRENGTH) * wave

    @property
    def is_running(self) -> bool:
        return self._timer.isActive()

    def add(self, widget: QWidget) -> Callable[[], None]:
        """Repaint `widget` at each frame until it is destroyed, or until the returned function is called."""
        self._followers.append(widget)
        self._start_or_stop()

        def drop() -> None:
            self._followers.remove(widget)
            self._start_or_stop()

        def leave() -> None:
            widget.destroyed.disconnect(drop)
            drop()

        widget.destroyed.connect(drop)  # a widget that is deleted while visible gets no hide event
        return leave

    def _start_or_stop(self) -> None:
        should_run = bool(self._followers) and self._theme.motion
        if should_run and not self._timer.isActive():
            self._timer.start()
        elif not should_run:
            self._timer.stop()

    def _on_timeout(self) -> None:
        for widget in tuple(self._followers):
            widget.update()

    def _on_theme_changed(self) -> None:
        self._start_or_stop()
        self._on_timeout()
