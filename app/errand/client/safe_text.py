"""Makes untrusted text safe to display."""

import re
import unicodedata
from functools import cache
from typing import Literal

# Escape sequences and control characters could move the cursor, hide a command or change the window's title. Marks of
# writing direction could display a command in another order than it runs.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Unicode categories that are invisible or misleading: controls, formats, surrogates, private use, unassigned
# characters, separators.
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"))
# Blank although their category is that of letters, marks or signs: fillers, an empty braille cell, variation selectors.
_BLANK = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC, 0x16FE4, 0x1D159),
        *(*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)),
    ]
)
_MOST_MARKS = 2  # per letter; more of them hide it
_OVERLAY = 1  # the combining class of marks that strike a letter through
_PLAIN = re.compile(r"[\n\t -~]*+")


def plain(text: str) -> str:
    """Remove escape sequences and control characters; newlines and tabs stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def output_text(text: str) -> str:
    """A program's output as a terminal shows it: only the last version of an overwritten line (a progress bar)."""
    text = text.replace("\r\n", "\n").rstrip("\r")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return plain(text)


def escape_hidden(text: str) -> str:
    """Escape every hidden or misleading character, for text that a person is asked to allow.

    Newlines and tabs stay. A letter keeps as many combining marks as living scripts use.
    """
    if _PLAIN.fullmatch(text):
        return text
    shown: list[str] = []
    is_letter, marks = False, 0
    for character in text:
        kind = _kind(character)
        if kind == "mark":
            marks += 1
            kind = "seen" if is_letter and marks <= _MOST_MARKS else "hidden"
        else:
            is_letter, marks = kind == "letter", 0
        shown.append(_escape(character) if kind == "hidden" else character)
    return "".join(shown)


def escape_hidden_line(text: str) -> str:
    """`escape_hidden` on one line, with a symbol for each newline."""
    return escape_hidden(text).replace("\t", " ").replace("\n", " ↵ ")


@cache
def _kind(character: str) -> Literal["hidden", "letter", "mark", "seen"]:
    """The class of a character. A mark combines with the letter before it."""
    category = unicodedata.category(character)
    if character in "\n\t ":
        return "seen"
    if category in _UNSEEN or ord(character) in _BLANK:
        return "hidden"
    if category in ("Mn", "Me"):
        is_overlay = category == "Me" or unicodedata.combining(character) == _OVERLAY
        return "hidden" if is_overlay else "mark"
    return "letter" if category[0] in "LM" else "seen"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
