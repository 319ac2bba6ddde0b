"""Converts Markdown to a themed document, and a selection in a document back to Markdown."""

import re

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
    QTextImageFormat,
    QTextLength,
    QTextListFormat,
    QTextTable,
    QTextTableCellFormat,
)

from app.window.theme.theme import Theme

_LINE = 1.5
# Styling a text of this size takes about 0.1 s; parts of real replies are a hundred times shorter.
_LONGEST = 20_000
_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
_FIXED = QTextBlockFormat.LineHeightTypes.FixedHeight.value

_NUMBERED = QTextListFormat.Style.ListDecimal
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARK = re.compile(r"\*\*|__|~~|\*(?=\w)|(?<=\w)\*|^#{1,6} |^> ?", re.MULTILINE)
_FENCE = ("```", "~~~")


def code_fence(code: str, language: str = "") -> str:
    """The fence is longer than any fence in the code."""
    mark = "```"
    while mark in code:
        mark += "`"
    return f"{mark}{language}\n{code.rstrip()}\n{mark}"


def quoted(text: str) -> str:
    """The text as a quotation."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n"))


def without_marks(markdown: str) -> str:
    """Code stays as it is written; a guess for the rest, which only has to find the same words."""
    if markdown.startswith(_FENCE):
        return markdown.partition("\n")[2]
    pieces = _LINK.sub(r"\1", markdown).split("`")
    return "".join(piece if number % 2 else _MARK.sub("", piece) for number, piece in enumerate(pieces))


def markdown_document(markdown: str, theme: Theme, *, muted: bool = False) -> QTextDocument:
    """A new document without a parent. HTML is shown as source text, and so is all of a very long text."""
    if len(markdown) > _LONGEST:
        return plain_document(markdown, theme, colour="muted" if muted else "text")
    document = QTextDocument()
    document.setUndoRedoEnabled(False)
    document.setDocumentMargin(0)
    document.setDefaultFont(theme.reading_font())
    document.setIndentWidth(theme.tokens.space_far)
    document.setMarkdown(markdown, _FEATURES)
    _Dress(document, theme, muted).put_on()
    return document


def plain_document(text: str, theme: Theme, *, colour: str = "text") -> QTextDocument:
    """The text verbatim, with the transcript's line height and in the colour of that token."""
    document = QTextDocument()
    document.setUndoRedoEnabled(False)
    document.setDocumentMargin(0)
    document.setDefaultFont(theme.reading_font())
    cursor = QTextCursor(document)
    line = QTextBlockFormat()
    line.setLineHeight(theme.tokens.size_reading * _LINE, _FIXED)
    cursor.setBlockFormat(line)
    look = QTextCharFormat()
    look.setForeground(QColor(theme.colour(colour)))
    cursor.insertText(text, look)
    return document


class _Dress:
    """Applies the theme to a parsed document in one pass."""

    def __init__(self, document: QTextDocument, theme: Theme, muted: bool) -> None:
        self._document = document
        self._theme = theme
        self._tokens = theme.tokens
        self._is_muted = muted
        self._cursor = QTextCursor(document)
        self._mono = theme.reading_font(mono=True)

    def put_on(self) -> None:
        block = self._document.begin()
        while block.isValid():
            self._dress_block(block)
            self._name_pictures(block)
            self._dress_letters(block)
            block = block.next()
        for frame in self._document.rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                self._dress_table(frame)

    def _dress_block(self, block: QTextBlock) -> None:
        tokens, look = self._tokens, block.blockFormat()
        is_table = self._is_in_table(block)
        is_last = not block.next().isValid()
        is_item = bool(look.objectIndex() >= 0 and not is_table)
        look.setTopMargin(0)
        look.setBottomMargin(0 if is_table or is_last else tokens.space_tight if is_item else tokens.space_close)
        level = look.headingLevel()
        if level:
            look.setTopMargin(0 if block.position() == 0 else tokens.space_normal)
        size = self._heading_size(level) if level else tokens.size_reading
        look.setLineHeight(round(size * _LINE), _FIXED)
        if look.hasProperty(QTextFormat.Property.BlockCodeFence) or look.nonBreakableLines():
            look.setBackground(QColor(tokens.code))
            look.setBottomMargin(0)
        self._cursor.setPosition(block.position())
        self._cursor.setBlockFormat(look)

    def _dress_letters(self, block: QTextBlock) -> None:
        level = block.blockFormat().headingLevel()
        is_quote = block.blockFormat().intProperty(QTextFormat.Property.BlockQuoteLevel) > 0
        pieces: list[tuple[int, int, QTextCharFormat]] = []
        iterator = block.begin()
        while not iterator.atEnd():
            fragment = iterator.fragment()
            look = fragment.charFormat()
            if self._dress_look(look, level, is_quote):
                pieces.append((fragment.position(), fragment.length(), look))
            iterator += 1
        for position, length, look in pieces:
            self._cursor.setPosition(position)
            self._cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
            self._cursor.setCharFormat(look)

    def _name_pictures(self, block: QTextBlock) -> None:
        """Replaces images by links with their URL, so that nothing named in a text is fetched."""
        pictures: list[tuple[int, int, QTextImageFormat]] = []
        iterator = block.begin()
        while not iterator.atEnd():
            fragment = iterator.fragment()
            if fragment.charFormat().isImageFormat():
                pictures.append((fragment.position(), fragment.length(), fragment.charFormat().toImageFormat()))
            iterator += 1
        for position, length, picture in reversed(pictures):
            name = picture.stringProperty(QTextFormat.Property.ImageAltText) or "a picture"
            look = QTextCharFormat()
            look.setAnchor(True)
            look.setAnchorHref(picture.name())
            self._cursor.setPosition(position)
            self._cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
            self._cursor.insertText(f"Load {name} ({picture.name()})" * length, look)

    def _dress_look(self, look: QTextCharFormat, level: int, is_quote: bool) -> bool:
        """Whether the format was changed: plain text already has the palette's colour, which keeps streaming cheap."""
        tokens = self._tokens
        if is_quote or self._is_muted:
            look.setForeground(QColor(tokens.muted))
        if level:
            look.clearProperty(QTextFormat.Property.FontSizeAdjustment)
            look.setProperty(QTextFormat.Property.FontPixelSize, self._heading_size(level))
            look.setFontWeight(QFont.Weight.DemiBold)
        if look.fontFixedPitch():
            look.setFontFamilies(self._mono.families())
            look.setProperty(QTextFormat.Property.FontPixelSize, self._mono.pixelSize())
            look.setBackground(QColor(tokens.code))
        if look.isAnchor():
            look.setForeground(QColor(tokens.link))
            look.setFontUnderline(False)
        return bool(is_quote or self._is_muted or level or look.fontFixedPitch() or look.isAnchor())

    def _dress_table(self, table: QTextTable) -> None:
        tokens, look = self._tokens, table.format().toTableFormat()
        look.setBorderCollapse(True)
        look.setBorder(1)
        look.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        look.setBorderBrush(QColor(tokens.hairline))
        look.setCellSpacing(0)
        look.setTopMargin(tokens.space_tight)
        look.setBottomMargin(tokens.space_tight)
        look.setWidth(QTextLength(QTextLength.Type.VariableLength, 0))
        table.setFormat(look)
        inside = QTextTableCellFormat()
        inside.setLeftPadding(tokens.space_close)
        inside.setRightPadding(tokens.space_close)
        inside.setTopPadding(tokens.space_tight)
        inside.setBottomPadding(tokens.space_tight)
        for row in range(table.rows()):
            for column in range(table.columns()):
                table.cellAt(row, column).setFormat(inside)

    def _heading_size(self, level: int) -> int:
        tokens = self._tokens
        above = {1: tokens.size_heading, 2: tokens.size_large}.get(level, tokens.size_base) - tokens.size_base
        return tokens.size_reading + above

    def _is_in_table(self, block: QTextBlock) -> bool:
        self._cursor.setPosition(block.position())
        return bool(self._cursor.currentTable())


def fragment_markdown(cursor: QTextCursor) -> str:
    """The selection as Markdown. A paragraph whose beginning is not selected has no block markup."""
    start, end = cursor.selectionStart(), cursor.selectionEnd()
    block = cursor.document().findBlock(start)
    lines = ""
    while block.isValid() and block.position() < max(end, start + 1):
        mark = _mark(block) if start <= block.position() else ""
        lines += f"{_gap(block) if lines else ''}{mark}{_letters(block, start, end)}"
        block = block.next()
    return lines


def _gap(block: QTextBlock) -> str:
    is_close = bool(block.textList()) or bool(QTextCursor(block).currentTable())
    return "\n" if is_close else "\n\n"


def _mark(block: QTextBlock) -> str:
    look, items = block.blockFormat(), block.textList()
    if look.headingLevel():
        return "#" * look.headingLevel() + " "
    if items:
        kind = items.format()
        is_numbered = kind.style() == _NUMBERED
        return "  " * (kind.indent() - 1) + (f"{items.itemNumber(block) + 1}. " if is_numbered else "- ")
    return "> " * look.intProperty(QTextFormat.Property.BlockQuoteLevel)


def _letters(block: QTextBlock, start: int, end: int) -> str:
    """The selected characters of a paragraph, with inline markup."""
    is_heading = block.blockFormat().headingLevel() > 0
    letters = ""
    iterator = block.begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        first = max(start - fragment.position(), 0)
        last = min(end - fragment.position(), fragment.length())
        if first < last:
            text = fragment.text()[first:last].replace("\u2028", "\n")
            letters += _dressed(text, fragment.charFormat(), is_heading)
        iterator += 1
    return letters


def _dressed(text: str, look: QTextCharFormat, is_heading: bool) -> str:
    words = text.strip()
    if not words:
        return text
    marked = words
    if look.fontFixedPitch():
        marked = f"`{marked}`"
    if look.fontItalic():
        marked = f"*{marked}*"
    if look.fontWeight() >= QFont.Weight.DemiBold and not is_heading:
        marked = f"**{marked}**"
    if look.isAnchor():
        marked = f"[{marked}]({look.anchorHref()})"
    return text.replace(words, marked, 1)
