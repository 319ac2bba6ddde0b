"""The field in which a sent message is edited: as high as its text, up to a bound. Enter sends, Esc cancels."""

from math import ceil

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent
from PySide6.QtWidgets import QPlainTextEdit

_MOST_LINES = 16
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class EditField(QPlainTextEdit):
    """`grown` says that its height changed."""

    submitted = Signal()
    cancelled = Signal()
    grown = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().documentLayout().documentSizeChanged.connect(self._on_document_size)

    def fit(self, width: int) -> None:
        """Take the height that the text needs at this width; a widget that was never shown does not know it."""
        self.document().setTextWidth(width)
        self._on_document_size()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if event.key() in _ENTER and modifiers == Qt.KeyboardModifier.NoModifier:
            self.submitted.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def _on_document_size(self) -> None:
        """A plain document's height is counted in lines, each of whole pixels."""
        lines = max(1, round(self.document().size().height()))
        margins = 2 * ceil(self.document().documentMargin()) + 2
        height = min(_MOST_LINES, lines) * ceil(QFontMetricsF(self.font()).lineSpacing()) + margins
        bars = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(bars.ScrollBarAsNeeded if lines > _MOST_LINES else bars.ScrollBarAlwaysOff)
        if height != self.height():
            self.setFixedHeight(height)
            self.grown.emit()
