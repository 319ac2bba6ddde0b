"""The agents that a person's message names with @, in their colours."""

from collections.abc import Iterator, Sequence

from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor, QTextDocument

from app.window.rows import Speaker
from app.window.theme.theme import Theme


def mark_named(document: QTextDocument, named: Sequence[Speaker], theme: Theme) -> None:
    """Of two names that begin alike the longer one counts."""
    for speaker in sorted(named, key=lambda speaker: len(speaker.name)):
        look = QTextCharFormat()
        look.setForeground(QColor(theme.person(speaker.color)))
        for place in _places(document, f"@{speaker.name}"):
            place.mergeCharFormat(look)


def _places(document: QTextDocument, word: str) -> Iterator[QTextCursor]:
    """Where it stands alone: an address has a letter before its @, another name goes on."""
    place = document.find(word)
    while not place.isNull():
        before = document.characterAt(place.selectionStart() - 1)
        after = document.characterAt(place.selectionEnd())
        if not before.isalnum() and not after.isalnum():
            yield place
        place = document.find(word, place.selectionEnd())
