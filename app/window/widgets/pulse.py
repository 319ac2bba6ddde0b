"""The one timer of everything that pulses; it runs only while somebody shows a pulse and motion is wanted."""

import math
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

from app.window.theme.theme import Theme

_FRAME_MS = 66
_PERIOD_S = 1.6
_LEAST = 0.35


class Pulse(QObject):
    """Tells its followers the strength, 0.35 to 1, some 15 times a second; 1 without motion."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._followers: list[Callable[[], None]] = []
        self._timer = QTimer(self)
        self._timer.setInterval(_FRAME_MS)
        self._timer.timeout.connect(self._on_timeout)
        theme.changed.connect(self._on_theme_changed)

    @property
    def strength(self) -> float:
        if not self._theme.motion:
            return 1.0
        wave = (1 + math.cos(2 * math.pi * time.monotonic() / _PERIOD_S)) / 2
        return _LEAST + (1 - _LEAST) * wave

    @property
    def is_running(self) -> bool:
        return self._timer.isActive()

    def follow(self, repaint: Callable[[], None]) -> Callable[[], None]:
        """Call `repaint` at each frame; returns what ends that."""
        self._followers.append(repaint)
        self._start_or_stop()

        def leave() -> None:
            if repaint in self._followers:
                self._followers.remove(repaint)
            self._start_or_stop()

        return leave

    def _start_or_stop(self) -> None:
        wanted = bool(self._followers) and self._theme.motion
        if wanted and not self._timer.isActive():
            self._timer.start()
        elif not wanted:
            self._timer.stop()

    def _on_timeout(self) -> None:
        for repaint in tuple(self._followers):
            repaint()

    def _on_theme_changed(self) -> None:
        self._start_or_stop()
        self._on_timeout()
