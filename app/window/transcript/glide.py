"""Smooth scrolling: a way of some pixels, walked in a tenth of a second. At once where no motion is wanted."""

from PySide6.QtCore import QAbstractAnimation, QEasingCurve, QObject, QVariantAnimation, Signal
from PySide6.QtWidgets import QWidget

from app.window.theme.theme import Theme

_MILLISECONDS = 120


class Glide(QObject):
    """`moved(pixels)` comes for each piece of the way; a new way is added to what is left of the one before."""

    moved = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._way = 0
        self._walked = 0
        self._animation = QVariantAnimation(self, duration=_MILLISECONDS, startValue=0.0, endValue=1.0)
        self._animation.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._animation.valueChanged.connect(self._on_value)

    def by(self, pixels: int) -> None:
        left = self._way - self._walked if self._is_walking() else 0
        self.stop()
        if not self._theme.motion:
            self.moved.emit(left + pixels)
            return
        self._way, self._walked = left + pixels, 0
        self._animation.start()

    def stop(self) -> None:
        self._animation.stop()
        self._way = self._walked = 0

    def _is_walking(self) -> bool:
        return self._animation.state() == QAbstractAnimation.State.Running

    def _on_value(self, value: float) -> None:
        step = round(self._way * value) - self._walked
        if step:
            self._walked += step
            self.moved.emit(step)
