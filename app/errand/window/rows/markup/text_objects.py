"""Formulas and pictures as objects in the text of a document: their character, their properties, their fragments."""

from collections.abc import Iterator

from PySide6.QtGui import QTextBlock, QTextBlockFormat, QTextCursor, QTextFormat, QTextFragment

OBJECT = "\ufffc"
"""The character in place of a formula or picture."""
AT_LEAST = QTextBlockFormat.LineHeightTypes.MinimumHeight.value

_PROPERTY = QTextFormat.Property.UserProperty.value
# Our own properties of characters.
MARK_KIND = _PROPERTY + 1
"""The kind of a mark. Other formats that a mark sets come from the theme."""
SOURCE = _PROPERTY + 2
"""The source of a formula or picture, which is copied."""
IS_REST = _PROPERTY + 3
"""The text is copied with the source before it."""
IS_DRAWN = _PROPERTY + 4
IS_DISPLAY = _PROPERTY + 5
ADDRESS = _PROPERTY + 6

_TYPE = QTextFormat.ObjectTypes.UserObject.value
FORMULA_TYPE = _TYPE + 1
PICTURE_TYPE = _TYPE + 2


def object_fragments(block: QTextBlock) -> Iterator[QTextFragment]:
    """Yield the fragments of a paragraph that has objects; most have none."""
    iterator = block.begin() if OBJECT in block.text() else block.end()
    while not iterator.atEnd():
        yield iterator.fragment()
        iterator += 1


def move_lines_apart(cursor: QTextCursor) -> None:
    """Let the lines of a paragraph be higher than usual for its objects."""
    block_format = cursor.blockFormat()
    block_format.setLineHeight(block_format.lineHeight(), AT_LEAST)
    cursor.setBlockFormat(block_format)
