"""Text to read, select and copy, as high as its content: it never scrolls down by itself, the transcript does."""

from PySide6.QtCore import QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QTextCursor,
    QTextDocument,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from app.window.blocks.paint import focus_ring
from app.window.theme.theme import Theme

_TAB_REASONS = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)


class TextView(QTextBrowser):
    """Shows one document after another. Links come out as `link(url)`; pictures that texts name are never fetched."""

    link = Signal(str)

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None, *, wraps: bool = True) -> None:
        super().__init__(parent)
        self.theme = theme
        self._shown: QTextDocument | None = None
        self._has_ring = False
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(
            QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere if wraps else QTextOption.WrapMode.NoWrap
        )
        self.viewport().setAutoFillBackground(False)
        self.setOpenLinks(False)
        self.setTabChangesFocus(True)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.anchorClicked.connect(self._on_anchor_clicked)

    def show_document(self, document: QTextDocument) -> None:
        """Show a document that nobody else has; it ends with the view or with the next one."""
        document.setDocumentMargin(0)
        document.setParent(self)
        self.setDocument(document)
        if self._shown is not None:
            # Else it would live as long as the view.
            self._shown.setParent(None)
        self._shown = document
        self.updateGeometry()

    def add_text(self, text: str) -> None:
        """More of a plain text, in the look of its end: what was there is not laid out again."""
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(text)
        self.updateGeometry()

    def selected(self) -> str:
        return self.textCursor().selectedText().replace("\u2029", "\n").replace("\u2028", "\n")

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        document = self.document()
        if document.textWidth() != width:  # else Qt would lay it out again
            document.setTextWidth(width)
        return round(document.size().height() + 0.49)

    def sizeHint(self) -> QSize:
        """Small: the height comes from `heightForWidth` alone."""
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        return QSize(self.theme.tokens.space_far, 0)

    def loadResource(self, type: int, name: QUrl | str) -> object:
        """Nothing: a text must not make the window open files or addresses."""
        return None

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Selecting, copying and links are its own; all other keys are the transcript's."""
        is_shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        is_own = event.matches(QKeySequence.StandardKey.Copy) or event.matches(QKeySequence.StandardKey.SelectAll)
        is_link = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and bool(
            self.textCursor().charFormat().isAnchor()
        )
        if is_own or is_shift or is_link:
            super().keyPressEvent(event)
        else:
            event.ignore()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._has_ring = event.reason() in _TAB_REASONS
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._has_ring = False
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._has_ring:
            painter = QPainter(self.viewport())
            focus_ring(painter, self.viewport().rect(), self.theme.tokens, self.theme.tokens.radius_control)

    def _on_anchor_clicked(self, url: QUrl) -> None:
        self.link.emit(url.toString())
