"""Converts program output to readable text: no escape sequences, only the last state of progress bars."""

import codecs
import os
import re

from errand.engine.tools.drawn_output import drawn
from errand.text.visible_text import escape_hidden

# Nobody sees them, and a text can be written in them that only a model reads: soft hyphens, marks without a width,
# tags, and long runs of what scripts and emoji need one by one (joiners, marks of direction, variation selectors).
_HIDDEN = re.compile(
    "[\u00ad\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
    "|[\u200c-\u200f\u202a-\u202e\u2066-\u2069\ufe00-\ufe0f]{4,}"
)
# They join emoji, and say nothing.
_OF_EMOJI = {0x200D: None, 0xFE0E: None, 0xFE0F: None}
_decoder = codecs.getincrementaldecoder("utf-8")
_CONTROLS = {code: "\ufffd" for code in (*range(32), 127) if chr(code) not in "\t\n"}
_NO_PART_OF_A_LINE = {code: "\ufffd" for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}


def is_clean(data: bytes) -> bool:
    """Return True for UTF-8 text without NUL, which loses nothing when displayed."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_text(name: str) -> bool:
    """Return False for a file name that is not UTF-8, which neither JSON nor the database accepts."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean_name(name: str) -> str:
    """Return a file name as one line of text: line breaks, escape codes and invalid UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace").translate(_NO_PART_OF_A_LINE)


def clean_output(data: bytes, *, has_more: bool = False) -> str:
    """Decode bytes as a terminal would show them; invalid UTF-8 and unprintable characters become U+FFFD.

    If more output follows (`has_more`), an incomplete character or escape sequence at the end is omitted.
    """
    return _decoder("replace").decode(drawn(data), final=not has_more).translate(_CONTROLS)


def without_hidden(text: str) -> str:
    """Text of other people or programs without what is hidden in it."""
    return _HIDDEN.sub("", text)


def visible_text(text: str) -> str:
    """Text of other people as one line for a prompt: what is hidden in it is removed or spelled out."""
    return escape_hidden(without_hidden(text).translate(_OF_EMOJI)).replace("\n", " ").replace("\t", " ")
