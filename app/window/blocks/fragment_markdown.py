"""A stretch of a document as Markdown again: headings, lists, quotes, code, emphasis, links. Tables become lines."""

from PySide6.QtGui import QFont, QTextBlock, QTextCharFormat, QTextCursor, QTextFormat, QTextListFormat

_NUMBERED = QTextListFormat.Style.ListDecimal


def fragment_markdown(cursor: QTextCursor) -> str:
    """What the cursor has selected. A paragraph that is cut at its beginning has no mark of its kind."""
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
    """The selected letters of a paragraph, with the marks of their looks."""
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
