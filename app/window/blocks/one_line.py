"""A text cut to one line, for where a card is folded."""

from PySide6.QtGui import QTextDocument

from app.client.characters import output_text

_PICTURE = "\ufffc"  # what Qt puts where a picture stands


def one_line(text: str, most: int) -> str:
    """Of at most `most` characters, with an ellipsis where it was cut."""
    line = " ".join(output_text(text[: most * 4]).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def markdown_line(markdown: str, most: int) -> str:
    """The same of a Markdown text, without its marks."""
    document = QTextDocument()
    document.setMarkdown(markdown[: most * 4])
    return one_line(document.toPlainText().replace(_PICTURE, ""), most)
