"""Selectable text that is as high as its content; scrolling and selection are the transcript's."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from weakref import WeakSet

from PySide6.QtCore import QPoint, QRect, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QFrame, QSizePolicy, QTextBrowser, QTextEdit, QWidget

from errand.window.rows.markup.decoration import MarkdownDocument, paint_decorations
from errand.window.rows.markup.web_pictures import address_of_link
from errand.window.theme.style import paint_focus_ring, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.theme.tokens import DesignTokens

HighlightKind = Literal["selected", "hit", "hit_now"]

_TAB_REASONS = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)


@dataclass(frozen=True, slots=True)
class TextHighlight:
    """A highlighted range from `start` up to, but not including, `end`."""

    start: int
    end: int
    kind: HighlightKind

    def char_format(self, tokens: DesignTokens) -> QTextCharFormat:
        char_format = QTextCharFormat()
        match self.kind:
            case "selected":
                background, foreground = tokens.accent, tokens.on_accent
            case "hit":
                background, foreground = tokens.hit, tokens.text
            case "hit_now":
                background, foreground = tokens.hit_now, tokens.text
        char_format.setBackground(QColor(background))
        char_format.setForeground(QColor(foreground))
        return char_format

    def selection(self, cursor: QTextCursor, tokens: DesignTokens) -> QTextEdit.ExtraSelection:
        """Return the highlight as Qt paints it; `cursor` selects its text."""
        cursor.setKeepPositionOnInsert(True)  # text that streams in after it is not highlighted
        selection = QTextEdit.ExtraSelection()
        selection.cursor = cursor  # pyright: ignore[reportAttributeAccessIssue] -- PySide6's stubs omit the fields of ExtraSelection
        selection.format = self.char_format(tokens)  # pyright: ignore[reportAttributeAccessIssue] -- the same
        return selection


class TextView(QTextBrowser):
    """Shows one document after another. Emits links as `link(url)`; never fetches images named in a text.

    A selection spans many views and belongs to the transcript: mouse events are passed on, `show_highlights` paints it.
    """

    link = Signal(str)

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None, *, wraps: bool = True) -> None:
        super().__init__(parent)
        self.theme = theme
        self._shown: QTextDocument | None = None
        self._has_ring = False
        self._highlights: tuple[TextHighlight, ...] = ()
        self._searched_for: tuple[int, re.Pattern[str]] | None = None
        self._match_spans: tuple[tuple[int, int], ...] = ()
        self._pressed_link = ""
        self._pressed_at = QPoint()
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(
            QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere if wraps else QTextOption.WrapMode.NoWrap
        )
        self.viewport().setAutoFillBackground(False)
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        self.setOpenLinks(False)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.LinksAccessibleByKeyboard)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.anchorClicked.connect(self._on_anchor_clicked)

    def show_document(self, document: QTextDocument) -> None:
        """Show a document and take ownership of it, until the next document is shown."""
        document.setDocumentMargin(0)
        document.setParent(self)
        self.show_highlights(())  # Qt keeps selections across documents, and crashes once the old document is gone
        self.setDocument(document)
        self._searched_for = None
        if self._shown is not None:
            # Otherwise it would live as long as the view.
            self._shown.setParent(None)
        self._shown = document
        has_objects = isinstance(document, MarkdownDocument) and "\ufffc" in document.toRawText()
        self.setAccessibleDescription(self._text_with_sources() if has_objects else "")
        self._note_pending()
        self.updateGeometry()

    @property
    def is_pending(self) -> bool:
        """True while formulas are not drawn yet."""
        document = self._shown
        return isinstance(document, MarkdownDocument) and document.formulas is not None and document.formulas.is_pending

    def fill_in(self) -> bool:
        """Draw the next formula; False if that is not possible yet."""
        document = self._shown
        assert isinstance(document, MarkdownDocument)
        assert document.formulas is not None
        if not document.formulas.fill_in():
            return False
        self._note_pending()
        self.updateGeometry()
        return True

    def _note_pending(self) -> None:
        (_pending.add if self.is_pending else _pending.discard)(self)

    def _text_with_sources(self) -> str:
        """Return the text for a screen reader, which does not know the formulas and pictures in it."""
        from errand.window.rows.markdown import plain_text  # not needed at the start

        selection = QTextCursor(self.document())
        selection.select(QTextCursor.SelectionType.Document)
        return plain_text(selection)

    def add_text(self, text: str, char_format: QTextCharFormat | None = None) -> None:
        """Append plain text, by default in the format of the end; does not lay out the existing text again."""
        self.show_highlights(())
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        if char_format is None:
            cursor.insertText(text)
        else:
            cursor.insertText(text, char_format)
        self.updateGeometry()

    def show_highlights(self, highlights: Sequence[TextHighlight]) -> None:
        """Highlight exactly these ranges; a new document has none."""
        if tuple(highlights) == self._highlights:
            return
        self._highlights = tuple(highlights)
        tokens = self.theme.tokens
        self.setExtraSelections(
            [
                highlight.selection(self.cursor_between(highlight.start, highlight.end), tokens)
                for highlight in highlights
            ]
        )

    @property
    def highlights(self) -> tuple[TextHighlight, ...]:
        """The highlighted ranges."""
        return self._highlights

    def occurrences(self, pattern: re.Pattern[str]) -> tuple[tuple[int, int], ...]:
        """Return the matches in the text as half-open ranges; cached until text or pattern change."""
        search = (self.document().revision(), pattern)
        if search != self._searched_for:
            text = self.toPlainText()
            self._searched_for, self._match_spans = search, tuple(_match_ranges(text, pattern))
        return self._match_spans

    def cursor_between(self, start: int, end: int) -> QTextCursor:
        """Return a cursor that selects a half-open range, clamped to the text."""
        last = self.document().characterCount() - 1
        cursor = QTextCursor(self.document())
        cursor.setPosition(min(start, last))
        cursor.setPosition(min(end, last), QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def reveal(self, start: int, end: int) -> QRect:
        """Scroll to this range if the view itself scrolls; returns its rectangle in viewport coordinates."""
        for bar, length, side in (
            (self.verticalScrollBar(), self.viewport().height(), QRect.top),
            (self.horizontalScrollBar(), self.viewport().width(), QRect.right),
        ):
            position = side(self._rect_between(start, end))
            if bar.maximum() and not 0 <= position < length:
                bar.setValue(bar.value() + position - length // 2)
        return self._rect_between(start, end)

    def _rect_between(self, start: int, end: int) -> QRect:
        first, last = self.cursor_between(start, start), self.cursor_between(end, end)
        return self.cursorRect(first).united(self.cursorRect(last))

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        document = self.document()
        if document.textWidth() != width:  # otherwise Qt would lay it out again
            document.setTextWidth(width)
        return round(document.size().height() + 0.49)

    def sizeHint(self) -> QSize:
        """Small: the height is determined by `heightForWidth`."""
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        return QSize(self.theme.tokens.space_far, 0)

    def loadResource(self, type: int, name: QUrl | str) -> object:
        """Loads nothing: a text must not make the window open files or URLs."""
        return None

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pressed_link = self.anchorAt(event.position().toPoint())
        self._pressed_at = event.globalPosition().toPoint()
        event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        link = self.anchorAt(event.position().toPoint())
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if link else Qt.CursorShape.IBeamCursor)
        set_tool_tip(self, address_of_link(link))
        event.ignore()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click on a link is handled here, unless it became a drag."""
        link, self._pressed_link = self._pressed_link, ""
        distance = (event.globalPosition().toPoint() - self._pressed_at).manhattanLength()
        is_click = event.button() == Qt.MouseButton.LeftButton and distance < QApplication.startDragDistance()
        if link and is_click and link == self.anchorAt(event.position().toPoint()):
            self.link.emit(link)
        event.ignore()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter on a focused link is handled here; all other keys are the transcript's."""
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and self.textCursor().charFormat().isAnchor():
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
        if isinstance(self._shown, MarkdownDocument) and (self._shown.bars or self._shown.boxes):
            painter = QPainter(self.viewport())
            painter.translate(-self.horizontalScrollBar().value(), -self.verticalScrollBar().value())
            paint_decorations(painter, self._shown, self.theme.tokens)
            painter.end()
        if self._has_ring:
            painter = QPainter(self.viewport())
            paint_focus_ring(painter, self.viewport().rect(), self.theme.tokens, self.theme.tokens.radius_control)

    def _on_anchor_clicked(self, url: QUrl) -> None:
        self.link.emit(url.toString())


_pending: WeakSet[TextView] = WeakSet()


def is_any_pending() -> bool:
    """Return True if formulas of any view may have to be drawn, which is cheaper than to ask each view."""
    return bool(_pending)


def _match_ranges(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield ranges in UTF-16 code units, as Qt counts: a character outside the BMP (most emoji) counts as two."""
    is_wide = any(character > "\uffff" for character in text)
    for match in pattern.finditer(text):
        start, end = match.span()
        if is_wide:
            start, end = (len(text[:offset].encode("utf-16-le")) // 2 for offset in (start, end))
        yield start, end
