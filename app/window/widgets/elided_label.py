"""A label of one line that ends in … where it has no room; the whole text is its tool tip."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent

from app.window.theme.look import Tone, set_tip
from app.window.theme.theme import Theme
from app.window.widgets.text_label import TextLabel

_LEAST_CHARACTERS = 4


class ElidedLabel(TextLabel):
    """`set_text` instead of `setText`: what is shown may be less than what it holds."""

    def __init__(
        self,
        theme: Theme,
        text: str = "",
        *,
        size: int = 0,
        tone: Tone = "text",
        bold: bool = False,
        mono: bool = False,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        self._mode = mode
        self._whole = text
        super().__init__(theme, "", size=size, tone=tone, bold=bold, mono=mono)
        self.set_text(text)

    @property
    def whole_text(self) -> str:
        return self._whole

    def set_text(self, text: str) -> None:
        self._whole = text
        self.setAccessibleName(text)
        self.updateGeometry()
        self._elide()

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self._one_line()) + 2, metrics.height())

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.averageCharWidth() * _LEAST_CHARACTERS, metrics.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        shown = self.fontMetrics().elidedText(self._one_line(), self._mode, self.width())
        self.setText(shown)
        set_tip(self, "" if shown == self._whole else self._whole)

    def _one_line(self) -> str:
        return " ".join(self._whole.split())
