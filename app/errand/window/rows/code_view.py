"""Code and program output in monospace, with syntax highlighting and clickable paths."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QColor,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from errand.text.translation import tr
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.widgets.diff.gutter import DiffGutter, VisibleBlock
from errand.window.widgets.diff.lines import DiffLine
from errand.window.widgets.highlighting import HighlightedRun, TokenKind, highlight, highlight_once

# Streaming code is highlighted line by line; in a string or comment of more than this it waits for the end.
_MAX_TAIL = 4_000
_OPEN_KINDS = ("string", "comment")
# A URL; or a path that is absolute or ends in a file extension, with an optional line number.
_LINK = re.compile(
    r"(?P<web>https?://[^\s<>\"'`\x00-\x1f]+)"
    r"|(?<![\w/.:~-])(?P<path>(?:~?/|\.{1,2}/)?(?:[\w.@+-]+/)+[\w.@+-]*\.\w{1,8}(?::\d+){0,2}"
    r"|~?/(?:[\w.@+-]+/)+[\w.@+-]+(?::\d+){0,2})"
)
_AFTER = ".,;:!?)]}"
# Of longer output only the end is shown.
_MAX_LINKED = 40_000

_COLOURS: dict[TokenKind, str] = {"text": "text", "inserted": "done", "deleted": "failed", "hunk": "muted"}
_BACKGROUNDS: dict[TokenKind, str] = {"inserted": "done_soft", "deleted": "failed_soft"}

_LINE = 1.45
_FIXED = QTextBlockFormat.LineHeightTypes.FixedHeight.value


def lexed_length(runs: Sequence[HighlightedRun]) -> int:
    """Return the length of the certain part of a text that ends with a newline.

    The next line cannot be inside a string or a comment.
    """
    start = certain = 0
    for number, run in enumerate(runs):
        end = start + len(run.text)
        if run.kind not in _OPEN_KINDS:
            certain = start + run.text.rfind("\n") + 1 if "\n" in run.text else certain
        elif number < len(runs) - 1 and run.text.rstrip(" \t").endswith("\n"):
            certain = start + run.text.rfind("\n") + 1
        start = end
    return certain


@dataclass(frozen=True, slots=True)
class OutputLink:
    """A part of the text; `link` is empty if it is not a link."""

    text: str
    link: str = ""


def find_links(text: str) -> Iterator[OutputLink]:
    """Yield the whole text in order, split at the boundaries of links."""
    done = 0
    for match in _LINK.finditer(text) if len(text) <= _MAX_LINKED else ():
        link = match.group().rstrip(_AFTER)
        if match.start() > done:
            yield OutputLink(text[done : match.start()])
        yield OutputLink(link, link)
        done = match.start() + len(link)
    if done < len(text):
        yield OutputLink(text[done:])


class CodeView(TextView):
    """`most_lines` limits the height; longer text scrolls inside, and starts at its end if `follows`.

    `has_links` makes URLs and paths clickable.
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
        # Of streaming code: how far its highlighting is certain and how far it went, each also in the document.
        self._lexed = self._lexed_at = self._lexed_to = self._coloured_to = 0
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        if most_lines:
            self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)

    def show_code(self, code: str, language: str, *, is_finished: bool = True) -> None:
        """Streaming code is appended, and its complete lines are highlighted, so that long code stays cheap."""
        lexed_language = language if is_finished else None
        if lexed_language == self._language and code == self._code:
            self.show_highlights(())  # they may belong to another row
            return
        if lexed_language is None and self._language is None and code.startswith(self._code):
            self.add_text(code[len(self._code) :], self._format("text"))
        else:
            self._lexed = self._lexed_at = self._lexed_to = self._coloured_to = 0
            self.show_document(
                self._document(highlight(code, language) if is_finished else (HighlightedRun(code, "text"),))
            )
        if not is_finished:
            self._highlight_lines(code, language)
        self._code, self._language = code, lexed_language
        self._wants_end = self._follows
        self._go_to_end()

    def _highlight_lines(self, code: str, language: str) -> None:
        """Highlight the complete lines since the last one that was certain."""
        end = code.rfind("\n") + 1
        if end <= self._lexed_to or end - self._lexed > _MAX_TAIL or "\r" in code[self._lexed :]:
            return
        runs = highlight_once(code[self._lexed : end], language)
        cursor, position = QTextCursor(self.document()), self._lexed_at
        for run in runs:
            after = position + _units(run.text)
            if run.kind != "text" or position < self._coloured_to:  # what it was taken for before the line was complete
                cursor.setPosition(position)
                if run.kind in _BACKGROUNDS:
                    cursor.setBlockFormat(self._line_format(run.kind))
                cursor.setPosition(after, QTextCursor.MoveMode.KeepAnchor)
                cursor.setCharFormat(self._format(run.kind))
            position = after
        self._lexed_to, self._coloured_to = end, position
        certain = lexed_length(runs)
        self._lexed_at += _units(code[self._lexed : self._lexed + certain])
        self._lexed += certain

    def set_wraps(self, wraps: bool) -> None:
        """Wrap long lines, or scroll them horizontally."""
        mode = QTextOption.WrapMode
        self.setWordWrapMode(mode.WrapAtWordBoundaryOrAnywhere if wraps else mode.NoWrap)

    def heightForWidth(self, width: int) -> int:
        """Return the height of the lines, if nothing wraps, plus the horizontal scroll bar."""
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
        """The position of the end is known only after the resize."""
        super().resizeEvent(event)
        self._go_to_end()

    def _go_to_end(self) -> None:
        if self._wants_end:
            self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Handles horizontal scrolling; vertical scrolling only if the view scrolls and is not at its end."""
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

    def _document(self, pieces: tuple[HighlightedRun, ...]) -> QTextDocument:
        document = QTextDocument()
        document.setUndoRedoEnabled(False)
        document.setDefaultFont(self.theme.reading_font(mono=True))
        option = document.defaultTextOption()
        option.setWrapMode(self.wordWrapMode())
        document.setDefaultTextOption(option)
        cursor = QTextCursor(document)
        cursor.setBlockFormat(self._line_format("text"))
        for before, piece in zip((None, *pieces), pieces, strict=False):
            if piece.kind in _BACKGROUNDS or (before is not None and before.kind in _BACKGROUNDS):
                cursor.setBlockFormat(self._line_format(piece.kind))
            self._insert(cursor, piece)
        return document

    def _insert(self, cursor: QTextCursor, run: HighlightedRun) -> None:
        char_format = self._format(run.kind)
        if not self._has_links:
            cursor.insertText(run.text, char_format)
            return
        link = QTextCharFormat(char_format)
        link.setAnchor(True)
        link.setForeground(QColor(self.theme.colour("link")))
        for piece in find_links(run.text):
            link.setAnchorHref(piece.link)
            cursor.insertText(piece.text, link if piece.link else char_format)

    def _format(self, kind: TokenKind) -> QTextCharFormat:
        char_format = QTextCharFormat()
        char_format.setForeground(QColor(self.theme.colour(_COLOURS.get(kind, f"syntax_{kind}"))))
        return char_format

    def _line_format(self, kind: TokenKind) -> QTextBlockFormat:
        line = QTextBlockFormat()
        line.setLineHeight(self.line_height(), _FIXED)
        if kind in _BACKGROUNDS:
            line.setBackground(QColor(self.theme.colour(_BACKGROUNDS[kind])))
        return line


class DiffView(CodeView):
    def __init__(self, theme: Theme, parent: QWidget | None = None, *, most_lines: int = 0) -> None:
        super().__init__(theme, tr("Changes"), parent, most_lines=most_lines)
        self._gutter = DiffGutter(theme, self, self._visible_blocks)
        self.horizontalScrollBar().valueChanged.connect(self.viewport().update)

    def show_lines(self, lines: list[DiffLine], path: str) -> None:
        """`path` names the file."""
        self.show_code("\n".join(line.text for line in lines), "")
        self._gutter.show_lines(lines, path=path)
        self.setViewportMargins(self._gutter.needed_width, 0, 0, 0)
        self._gutter.place()

    def heightForWidth(self, width: int) -> int:
        return super().heightForWidth(width - self._gutter.needed_width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._gutter.place()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        self._gutter.paint_grounds(painter)
        painter.end()
        super().paintEvent(event)

    def _visible_blocks(self) -> Iterator[VisibleBlock]:
        layout, scrolled = self.document().documentLayout(), self.verticalScrollBar().value()
        block = self.cursorForPosition(self.viewport().rect().topLeft()).block()
        while block.isValid():
            top = layout.blockBoundingRect(block).top() - scrolled
            if top > self.viewport().height():
                break
            yield VisibleBlock(block, top, self.line_height())
            block = block.next()


def _units(text: str) -> int:
    """Return the length in UTF-16 code units, as Qt counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
