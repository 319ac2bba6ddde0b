"""Turns the marker characters of `source` in a parsed document into formats, which say how to copy them."""

from PySide6.QtGui import QColor, QFont, QTextCharFormat, QTextCursor, QTextFormat

from errand.window.rows.markup.decoration import MarkdownDocument
from errand.window.rows.markup.formulas import DocumentFormulas
from errand.window.rows.markup.source import Mark, MarkedSource, MarkKind, markers
from errand.window.rows.markup.text_objects import MARK_KIND
from errand.window.theme.theme import Theme


def apply_marks(document: MarkdownDocument, marked: MarkedSource, theme: Theme) -> None:
    """The document has just been parsed from the marked source and is not laid out yet."""
    all_markers = list(markers(document.toRawText()))
    cursor = QTextCursor(document)
    cursor.beginEditBlock()  # otherwise each step looks through its whole paragraph
    for kind, start, end in _ranges(all_markers):
        cursor.setPosition(start + 1)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(_format(kind, theme))
        if kind == "note":
            _shrink_note(cursor, theme)
    for position, mark in reversed(all_markers):
        cursor.setPosition(position)
        cursor.setPosition(position + 1, QTextCursor.MoveMode.KeepAnchor)
        if mark.kind == "formula" and mark.number < len(marked.formulas):
            _formulas(document, theme).insert(cursor, marked.formulas[mark.number])
        else:
            cursor.removeSelectedText()
    cursor.endEditBlock()


def _formulas(document: MarkdownDocument, theme: Theme) -> DocumentFormulas:
    if document.formulas is None:
        document.formulas = DocumentFormulas(document, theme)
    return document.formulas


def _ranges(found: list[tuple[int, Mark]]) -> list[tuple[MarkKind, int, int]]:
    """Return the pairs of markers; the parser may have lost one of a pair, for example beyond the last column of a
    table.
    """
    opened: list[tuple[MarkKind, int]] = []
    ranges: list[tuple[MarkKind, int, int]] = []
    for position, mark in found:
        if mark.kind == "formula":
            continue
        if mark.begins:
            opened.append((mark.kind, position))
        elif opened and opened[-1][0] == mark.kind:
            kind, start = opened.pop()
            ranges.append((kind, start, position))
    return ranges


def _format(kind: MarkKind, theme: Theme) -> QTextCharFormat:
    tokens, align = theme.tokens, QTextCharFormat.VerticalAlignment
    char_format = QTextCharFormat()
    char_format.setProperty(MARK_KIND, kind)
    match kind:
        case "sub":
            char_format.setVerticalAlignment(align.AlignSubScript)
        case "sup":
            char_format.setVerticalAlignment(align.AlignSuperScript)
        case "ref" | "note":
            char_format.setVerticalAlignment(align.AlignSuperScript)
            char_format.setForeground(QColor(tokens.link))
        case "kbd":
            char_format.setFontFamilies(theme.reading_font(mono=True).families())
            char_format.setProperty(QTextFormat.Property.FontPixelSize, tokens.size_reading - 1)
            char_format.setBackground(QColor(tokens.hairline))
        case "b":
            char_format.setFontWeight(QFont.Weight.Bold)
        case "i":
            char_format.setFontItalic(True)
    return char_format


def _shrink_note(label: QTextCursor, theme: Theme) -> None:
    """The text of a footnote, from its label to the end of the paragraph, is small and muted."""
    cursor = QTextCursor(label)
    cursor.setPosition(label.selectionEnd())
    cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
    char_format = QTextCharFormat()
    char_format.setForeground(QColor(theme.tokens.muted))
    char_format.setProperty(QTextFormat.Property.FontPixelSize, theme.tokens.size_reading - 1)
    cursor.mergeCharFormat(char_format)
