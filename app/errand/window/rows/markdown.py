"""Converts Markdown to a themed document, and a selection in a document back to Markdown."""

import re
from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextListFormat,
    QTextTable,
    QTextTableCellFormat,
)

from errand.window.rows.markup.decoration import MarkdownDocument
from errand.window.rows.markup.marks import apply_marks
from errand.window.rows.markup.pictures import DocumentPictures, FindPicture, replace_images
from errand.window.rows.markup.source import mark_up
from errand.window.rows.markup.text_objects import (
    AT_LEAST,
    IS_REST,
    MARK_KIND,
    OBJECT,
    SOURCE,
    object_fragments,
)
from errand.window.theme.theme import Theme

_LINE = 1.5
# Styling a text of this size takes about 0.1 s; parts of real replies are a hundred times shorter.
MAX_STYLED = 20_000
_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
_FIXED = QTextBlockFormat.LineHeightTypes.FixedHeight.value

_NUMBERED = QTextListFormat.Style.ListDecimal
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKUP = re.compile(r"\*\*|__|~~|\*(?=\w)|(?<=\w)\*|^#{1,6} |^> ?", re.MULTILINE)
_FENCE = ("```", "~~~")


def code_fence(code: str, language: str = "") -> str:
    """Return the code in a fence that is longer than any fence in it."""
    mark = "```"
    while mark in code:
        mark += "`"
    return f"{mark}{language}\n{code.rstrip()}\n{mark}"


def quoted(text: str) -> str:
    """Return the text as a quotation."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n"))


def without_markup(markdown: str) -> str:
    """Code stays as it is written; a guess for the rest, which only has to find the same words."""
    if markdown.startswith(_FENCE):
        return markdown.partition("\n")[2]
    pieces = _LINK.sub(r"\1", markdown).split("`")
    return "".join(piece if number % 2 else _MARKUP.sub("", piece) for number, piece in enumerate(pieces))


def markdown_document(
    markdown: str, theme: Theme, *, muted: bool = False, find: FindPicture | None = None
) -> QTextDocument:
    """Return a new document without a parent. HTML is shown as source text, and so is all of a very long text.

    A few tags without attributes are an exception (`markup/source.py`). `find` gives the pictures that were loaded.
    """
    if len(markdown) > MAX_STYLED:
        return plain_document(markdown, theme, colour="muted" if muted else "text")
    marked = mark_up(markdown)
    document = MarkdownDocument()
    document.setUndoRedoEnabled(False)
    document.setDocumentMargin(0)
    document.setDefaultFont(theme.reading_font())
    document.setIndentWidth(theme.tokens.space_far)
    document.setMarkdown(marked.text, _FEATURES)
    if marked.has_marks:
        apply_marks(document, marked, theme)
    _DocumentStyler(document, theme, muted, find).apply()
    if document.formulas is not None:
        document.formulas.attach()
    pictures = document.findChild(DocumentPictures)
    if isinstance(pictures, DocumentPictures):
        pictures.attach()
    return document


def plain_document(text: str, theme: Theme, *, colour: str = "text") -> QTextDocument:
    """Return the text verbatim, with the transcript's line height and in the colour of that token."""
    document = QTextDocument()
    document.setUndoRedoEnabled(False)
    document.setDocumentMargin(0)
    document.setDefaultFont(theme.reading_font())
    cursor = QTextCursor(document)
    block_format = QTextBlockFormat()
    block_format.setLineHeight(theme.tokens.size_reading * _LINE, _FIXED)
    cursor.setBlockFormat(block_format)
    char_format = QTextCharFormat()
    char_format.setForeground(QColor(theme.colour(colour)))
    cursor.insertText(text, char_format)
    return document


class _DocumentStyler:
    """Applies the theme to a parsed document in one pass."""

    def __init__(self, document: MarkdownDocument, theme: Theme, muted: bool, find: FindPicture | None) -> None:
        self._document = document
        self._theme = theme
        self._tokens = theme.tokens
        self._is_muted = muted
        self._find = find
        self._cursor = QTextCursor(document)
        self._mono = theme.reading_font(mono=True)
        self._has_decorations = False

    def apply(self) -> None:
        self._cursor.beginEditBlock()  # otherwise each step looks through its whole paragraph
        block = self._document.begin()
        while block.isValid():
            self._style_block(block)
            replace_images(block, self._cursor, self._theme, self._find)
            self._style_fragments(block)
            block = block.next()
        self._cursor.endEditBlock()
        for frame in self._document.rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                self._style_table(frame)
        if self._has_decorations:
            self._document.find_decorations()

    def _style_block(self, block: QTextBlock) -> None:
        tokens, block_format = self._tokens, block.blockFormat()
        is_table = self._is_in_table(block)
        is_last = not block.next().isValid()
        is_item = bool(block_format.objectIndex() >= 0 and not is_table)
        block_format.setTopMargin(0)
        block_format.setBottomMargin(
            0 if is_table or is_last else tokens.space_tight if is_item else tokens.space_close
        )
        level = block_format.headingLevel()
        if level:
            block_format.setTopMargin(0 if block.position() == 0 else tokens.space_normal)
        size = self._heading_size(level) if level else tokens.size_reading
        formulas = self._document.formulas
        is_apart = formulas is not None and formulas.has_high(block)
        block_format.setLineHeight(round(size * _LINE), AT_LEAST if is_apart else _FIXED)
        if block_format.hasProperty(QTextFormat.Property.BlockCodeFence) or block_format.nonBreakableLines():
            block_format.setBackground(QColor(tokens.code))
            block_format.setBottomMargin(0)
        if _is_rule(block):
            block_format.setBackground(QColor(tokens.hairline))
        if _is_rule(block) or (not block.text() and _is_rule(block.next())):
            # Above a rule at the beginning of a text, Qt leaves an empty paragraph.
            block_format.setLineHeight(tokens.space_tight, _FIXED)
            block_format.setBottomMargin(0)
        quotes = block_format.intProperty(QTextFormat.Property.BlockQuoteLevel)
        if quotes:
            block_format.setLeftMargin(quotes * tokens.space_wide)
            self._has_decorations = True
        self._cursor.setPosition(block.position())
        self._cursor.setBlockFormat(block_format)
        if block_format.marker() != QTextBlockFormat.MarkerType.NoMarker:
            self._hide_marker()

    def _hide_marker(self) -> None:
        """Qt paints the marker of a task in the colour of its paragraph; a box is painted in its place."""
        char_format = self._cursor.blockCharFormat()
        char_format.setForeground(QColor(Qt.GlobalColor.transparent))
        self._cursor.setBlockCharFormat(char_format)
        self._has_decorations = True

    def _style_fragments(self, block: QTextBlock) -> None:
        level = block.blockFormat().headingLevel()
        is_quote = block.blockFormat().intProperty(QTextFormat.Property.BlockQuoteLevel) > 0
        pieces: list[tuple[int, int, QTextCharFormat]] = []
        iterator = block.begin()
        while not iterator.atEnd():
            fragment = iterator.fragment()
            char_format = fragment.charFormat()
            if self._style_char_format(char_format, level, is_quote):
                pieces.append((fragment.position(), fragment.length(), char_format))
            iterator += 1
        for position, length, char_format in pieces:
            self._cursor.setPosition(position)
            self._cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
            self._cursor.setCharFormat(char_format)

    def _style_char_format(self, char_format: QTextCharFormat, level: int, is_quote: bool) -> bool:
        """Return True if the format was changed: plain text has the palette's colour, which keeps streaming cheap."""
        tokens = self._tokens
        if is_quote or self._is_muted:
            char_format.setForeground(QColor(tokens.muted))
        if level:
            char_format.clearProperty(QTextFormat.Property.FontSizeAdjustment)
            char_format.setProperty(QTextFormat.Property.FontPixelSize, self._heading_size(level))
            char_format.setFontWeight(QFont.Weight.DemiBold)
        if char_format.fontFixedPitch():
            char_format.setFontFamilies(self._mono.families())
            char_format.setProperty(QTextFormat.Property.FontPixelSize, self._mono.pixelSize())
            char_format.setBackground(QColor(tokens.code))
        if char_format.isAnchor():
            char_format.setForeground(QColor(tokens.link))
            char_format.setFontUnderline(False)
        return bool(is_quote or self._is_muted or level or char_format.fontFixedPitch() or char_format.isAnchor())

    def _style_table(self, table: QTextTable) -> None:
        tokens, table_format = self._tokens, table.format().toTableFormat()
        table_format.setBorderCollapse(True)
        table_format.setBorder(1)
        table_format.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        table_format.setBorderBrush(QColor(tokens.hairline))
        table_format.setCellSpacing(0)
        table_format.setTopMargin(tokens.space_tight)
        table_format.setBottomMargin(tokens.space_tight)
        table_format.setWidth(QTextLength(QTextLength.Type.VariableLength, 0))
        table.setFormat(table_format)
        cell_format = QTextTableCellFormat()
        cell_format.setLeftPadding(tokens.space_close)
        cell_format.setRightPadding(tokens.space_close)
        cell_format.setTopPadding(tokens.space_tight)
        cell_format.setBottomPadding(tokens.space_tight)
        for row in range(table.rows()):
            for column in range(table.columns()):
                table.cellAt(row, column).setFormat(cell_format)
        for column in range(table.columns() if table.rows() > 1 else 0):
            self._align_head(table, column)

    def _align_head(self, table: QTextTable, column: int) -> None:
        """Qt aligns the cells below the head only."""
        block_format = QTextBlockFormat()
        block_format.setAlignment(table.cellAt(1, column).firstCursorPosition().blockFormat().alignment())
        table.cellAt(0, column).firstCursorPosition().mergeBlockFormat(block_format)

    def _heading_size(self, level: int) -> int:
        tokens = self._tokens
        above = {1: tokens.size_heading, 2: tokens.size_large}.get(level, tokens.size_base) - tokens.size_base
        return tokens.size_reading + above

    def _is_in_table(self, block: QTextBlock) -> bool:
        self._cursor.setPosition(block.position())
        return bool(self._cursor.currentTable())


def _is_rule(block: QTextBlock) -> bool:
    return block.blockFormat().hasProperty(QTextFormat.Property.BlockTrailingHorizontalRulerWidth)


_TASKS = {QTextBlockFormat.MarkerType.Checked: "[x] ", QTextBlockFormat.MarkerType.Unchecked: "[ ] "}


def fragment_markdown(cursor: QTextCursor) -> str:
    """Return the selection as Markdown. A paragraph whose beginning is not selected has no block markup."""
    start, end = cursor.selectionStart(), cursor.selectionEnd()
    block = cursor.document().findBlock(start)
    lines = ""
    while block.isValid() and block.position() < max(end, start + 1):
        mark = _block_markup(block) if start <= block.position() else ""
        lines += f"{_separator(block) if lines else ''}{mark}{_inline_markdown(block, start, end)}"
        block = block.next()
    return lines


def is_one_run(cursor: QTextCursor) -> bool:
    """Return True if all of the selection has the same format: then nobody expects markup, as of a word that is
    copied.
    """
    start, end = cursor.selectionStart(), cursor.selectionEnd()
    iterator = cursor.document().findBlock(start).begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        if fragment.position() <= start and end <= fragment.position() + fragment.length():
            return not fragment.charFormat().hasProperty(SOURCE)
        iterator += 1
    return False


def plain_text(cursor: QTextCursor) -> str:
    """Return the selection without markup; of a formula its source."""
    text = cursor.selection().toPlainText()
    if OBJECT not in text:
        return text
    sources = _formula_sources(cursor)
    return "".join(next(sources, character) if character == OBJECT else character for character in text)


def _formula_sources(cursor: QTextCursor) -> Iterator[str]:
    """Yield the sources of the formulas in a selection, in their order."""
    start, end = cursor.selectionStart(), cursor.selectionEnd()
    block = cursor.document().findBlock(start)
    while block.isValid() and block.position() < end:
        for fragment in object_fragments(block):
            if fragment.text()[:1] == OBJECT:
                count = min(end, fragment.position() + fragment.length()) - max(start, fragment.position())
                yield from [str(fragment.charFormat().property(SOURCE))] * count
        block = block.next()


def _separator(block: QTextBlock) -> str:
    is_close = bool(block.textList()) or bool(QTextCursor(block).currentTable())
    return "\n" if is_close else "\n\n"


def _block_markup(block: QTextBlock) -> str:
    block_format, items = block.blockFormat(), block.textList()
    if block_format.headingLevel():
        return "#" * block_format.headingLevel() + " "
    if items:
        kind = items.format()
        is_numbered = kind.style() == _NUMBERED
        mark = f"{items.itemNumber(block) + kind.start()}. " if is_numbered else "- "
        return "  " * (kind.indent() - 1) + mark + _TASKS.get(block_format.marker(), "")
    return "> " * block_format.intProperty(QTextFormat.Property.BlockQuoteLevel)


def _inline_markdown(block: QTextBlock, start: int, end: int) -> str:
    """Return the selected characters of a paragraph, with inline markup."""
    is_heading = block.blockFormat().headingLevel() > 0
    markdown = ""
    iterator = block.begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        first = max(start - fragment.position(), 0)
        last = min(end - fragment.position(), fragment.length())
        if first < last:
            text = fragment.text()[first:last].replace("\u2028", "\n")
            markdown += _with_inline_markup(text, fragment.charFormat(), is_heading)
        iterator += 1
    return markdown


_MARKUP_OF = {
    "sub": "<sub>{}</sub>",
    "sup": "<sup>{}</sup>",
    "kbd": "<kbd>{}</kbd>",
    "ref": "[^{}]",
    "note": "[^{}]:",
}


def _with_inline_markup(text: str, char_format: QTextCharFormat, is_heading: bool) -> str:
    stripped = text.strip()
    if not stripped:
        return text
    source = char_format.property(SOURCE)
    if char_format.boolProperty(IS_REST):
        return ""
    if isinstance(source, str):
        return source * max(1, text.count(OBJECT))
    marked = stripped
    if char_format.fontFixedPitch():
        marked = f"`{marked}`"
    if char_format.fontStrikeOut():
        marked = f"~~{marked}~~"
    kind = char_format.property(MARK_KIND)
    if isinstance(kind, str) and kind in _MARKUP_OF:
        return text.replace(stripped, _MARKUP_OF[kind].format(marked), 1)
    if char_format.fontItalic():
        marked = f"*{marked}*"
    if char_format.fontWeight() >= QFont.Weight.DemiBold and not is_heading:
        marked = f"**{marked}**"
    if char_format.isAnchor():
        marked = f"[{marked}]({char_format.anchorHref()})"
    return text.replace(stripped, marked, 1)
