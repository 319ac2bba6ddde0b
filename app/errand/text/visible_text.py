"""Spells out what cannot be seen: texts and commands that a person decides about, for every client alike."""

import re
import shlex
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Literal

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
_MAX_MARKS = 2  # per letter; more of them hide it
_OVERLAY = 1  # the combining class of marks that strike a letter through
_PLAIN = re.compile(r"[\n\t -~]*+")
_ANSI_C = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}


def command_text(arguments: Iterable[str]) -> str:
    """Return a command on one line, each argument quoted as a shell would read it."""
    return " ".join(map(argument_text, arguments))


def argument_text(argument: str) -> str:
    """Return an argument in quotes, on one line, with each hidden character spelled out."""
    spelled = escape_hidden(argument)
    if spelled == argument and not {"\n", "\t"} & set(argument):
        return shlex.quote(argument)
    # Bash reads $'…' as the same argument.
    return f"$'{escape_hidden(''.join(_ANSI_C.get(character, character) for character in argument))}'"


def escape_hidden(text: str) -> str:
    """Escape every hidden or misleading character, for text that a person is asked to allow.

    Newlines and tabs stay. A letter keeps as many combining marks as living scripts use.
    """
    if _PLAIN.fullmatch(text):
        return text
    pieces: list[str] = []
    is_letter, marks = False, 0
    for character in text:
        kind = _kind(character)
        if kind == "mark":
            marks += 1
            kind = "seen" if is_letter and marks <= _MAX_MARKS else "hidden"
        else:
            is_letter, marks = kind == "letter", 0
        pieces.append(_escape(character) if kind == "hidden" else character)
    return "".join(pieces)


@cache
def _kind(character: str) -> Literal["hidden", "letter", "mark", "seen"]:
    """Return the class of a character. A mark combines with the letter before it."""
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
