"""Code or a program's output in monospace: scrolls sideways, and downwards only where a height is given."""

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QColor,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from app.window.blocks.highlight import Kind, Run, runs
from app.window.blocks.output_links import linked
from app.window.blocks.text_view import TextView
from app.window.theme.theme import Theme

_LINE = 1.45
_FIXED = QTextBlockFormat.LineHeightTypes.FixedHeight.value


class CodeView(TextView):
    """`most_lines` limits the height; what is longer scrolls in place and starts at its end if `follows`.

    With `has_links` addresses and paths can be clicked.
    """

    def __init__(
        self,
        theme: Theme,
        name: str,
        parent: QWidget | None = None,
        *,
        most_lines: int = 0,
        follows: bool = False,
        has_links: bool = False,
    ) -> None:
        super().__init__(theme, name, parent, wraps=False)
        self._most_lines = most_lines
        self._follows = follows
        self._has_links = has_links
        self._wants_end = follows
        self._code = ""
        self._language: str | None = ""
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        if most_lines:
            self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)

    def show_code(self, code: str, language: str, *, is_finished: bool = True) -> None:
        """Only finished code is coloured; code that grows is added to, so that a long one stays cheap."""
        wanted = language if is_finished else None
        if wanted == self._language and code == self._code:
            self.show_marks(())  # they may be those of another row
            return
        if wanted is None and self._language is None and code.startswith(self._code):
            self.add_text(code[len(self._code) :])
        else:
            self.show_document(self._document(runs(code, language) if is_finished else (Run(code, "text"),)))
        self._code, self._language = code, wanted
        self._wants_end = self._follows
        self._go_to_end()

    def set_wraps(self, wraps: bool) -> None:
        """Whether long lines are broken, or go on to the right."""
        mode = QTextOption.WrapMode
        self.setWordWrapMode(mode.WrapAtWordBoundaryOrAnywhere if wraps else mode.NoWrap)

    def heightForWidth(self, width: int) -> int:
        """Of the lines, where nothing wraps. The horizontal bar needs its place too."""
        document = self.document()
        if self.wordWrapMode() != QTextOption.WrapMode.NoWrap:
            return super().heightForWidth(width)
        lines = document.blockCount()
        if self._most_lines:
            lines = min(lines, self._most_lines)
        bar = self.horizontalScrollBar().sizeHint().height() if document.idealWidth() > width else 0
        return lines * self.line_height() + bar

    def line_height(self) -> int:
        return round(self.theme.tokens.size_reading * _LINE)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Only now it is known what the end is."""
        super().resizeEvent(event)
        self._go_to_end()

    def _go_to_end(self) -> None:
        if self._wants_end:
            self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Sideways is its own; downwards too where it scrolls and is not at its end."""
        sideways = event.angleDelta().x() or event.pixelDelta().x()
        if sideways or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            bar = self.horizontalScrollBar()
        else:
            bar = self.verticalScrollBar()
        down = (event.pixelDelta() or event.angleDelta()).y() or sideways
        is_end = bar.value() == (bar.minimum() if down > 0 else bar.maximum())
        if is_end or (bar is self.verticalScrollBar() and not self._most_lines):
            event.ignore()
            return
        self._wants_end = False
        bar.setValue(bar.value() - down // (1 if event.pixelDelta().y() else 2))
        event.accept()

    def _document(self, pieces: tuple[Run, ...]) -> QTextDocument:
        document = QTextDocument()
        document.setUndoRedoEnabled(False)
        document.setDefaultFont(self.theme.reading_font(mono=True))
        option = document.defaultTextOption()
        option.setWrapMode(self.wordWrapMode())
        document.setDefaultTextOption(option)
        cursor = QTextCursor(document)
        line = QTextBlockFormat()
        line.setLineHeight(self.line_height(), _FIXED)
        cursor.setBlockFormat(line)
        for piece in pieces:
            self._insert(cursor, piece)
        return document

    def _insert(self, cursor: QTextCursor, run: Run) -> None:
        look = self._look(run.kind)
        if not self._has_links:
            cursor.insertText(run.text, look)
            return
        link = QTextCharFormat(look)
        link.setAnchor(True)
        link.setForeground(QColor(self.theme.colour("link")))
        for piece in linked(run.text):
            link.setAnchorHref(piece.link)
            cursor.insertText(piece.text, link if piece.link else look)

    def _look(self, kind: Kind) -> QTextCharFormat:
        look = QTextCharFormat()
        look.setForeground(QColor(self.theme.colour("text" if kind == "text" else f"syntax_{kind}")))
        return look
