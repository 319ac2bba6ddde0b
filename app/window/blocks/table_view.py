"""Text with a table that may be wider than the column: words are not broken, it scrolls sideways by itself."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocument, QTextOption, QTextTable, QWheelEvent
from PySide6.QtWidgets import QWidget

from app.window.blocks.text_view import TextView
from app.window.theme.theme import Theme


class TableView(TextView):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "Table", parent)
        self.setWordWrapMode(QTextOption.WrapMode.WordWrap)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)

    def heightForWidth(self, width: int) -> int:
        """The horizontal bar needs its place too."""
        height = super().heightForWidth(width)
        is_wide = self.document().size().width() > width
        return height + (self.horizontalScrollBar().sizeHint().height() if is_wide else 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Sideways is its own, until its end."""
        moved = event.pixelDelta() or event.angleDelta()
        is_shifted = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        sideways = moved.x() or (moved.y() if is_shifted else 0)
        bar = self.horizontalScrollBar()
        if not sideways or bar.value() == (bar.minimum() if sideways > 0 else bar.maximum()):
            event.ignore()
            return
        bar.setValue(bar.value() - sideways)
        event.accept()


def has_table(document: QTextDocument) -> bool:
    return any(isinstance(frame, QTextTable) for frame in document.rootFrame().childFrames())
