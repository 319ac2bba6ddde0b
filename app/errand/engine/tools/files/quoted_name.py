r"""File names as one line of text that a tool takes back as it stands.

A name with line breaks, invisible characters or bytes that are not UTF-8 is quoted as git quotes it: "caf\351.txt".
"""

import os
import re

_ESCAPES = {b"\a": "a", b"\b": "b", b"\t": "t", b"\n": "n", b"\v": "v", b"\f": "f", b"\r": "r", b'"': '"', b"\\": "\\"}
_CONTROLS = {letter: byte for byte, letter in _ESCAPES.items()}
# Controls, marks of direction and without width, and bytes that are not UTF-8.
_INVISIBLE = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff"
)
# Also blanks at either end, a quote at the beginning, and what looks like the number of a line.
_ODD = re.compile(rf"[{_INVISIBLE}]|\A\s|\s\Z|\A\"|:\d")
_TO_ESCAPE = re.compile(rf'[{_INVISIBLE}"\\]')
_QUOTED = re.compile(r'"(?:[^"\\]|\\(?:[abtnvfr"\\]|[0-3][0-7]{2}))*"', re.DOTALL)
_ESCAPED = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')


def quoted(name: str) -> str:
    """Return the name or path itself, unless it would be read wrongly."""
    if name.startswith("~"):
        name = f"./{name}"  # else it means a home directory
    return f'"{_TO_ESCAPE.sub(_escaped, name)}"' if _ODD.search(name) else name


def unquoted(text: str) -> str | None:
    """Return the name that was quoted; None if the text is not one in quotes."""
    if not _QUOTED.fullmatch(text):
        return None
    return os.fsdecode(_ESCAPED.sub(_byte, text[1:-1].encode("utf-8", "surrogateescape")))


def _escaped(match: re.Match[str]) -> str:
    try:
        data = os.fsencode(match[0])
    except UnicodeEncodeError:  # half a character: no name here has it, but a model may send it
        data = "\ufffd".encode()
    letter = _ESCAPES.get(data)
    return f"\\{letter}" if letter else "".join(f"\\{byte:03o}" for byte in data)


def _byte(match: re.Match[bytes]) -> bytes:
    letter = match[1]
    return bytes((int(letter, 8),)) if len(letter) == 3 else _CONTROLS[letter.decode()]
