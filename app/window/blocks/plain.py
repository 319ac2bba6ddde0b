"""A program's output as text to look at: without escape sequences, control characters and marks of direction."""

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_REWRITTEN = re.compile(r"[^\n]*\r(?!\n)")


def plain(text: str) -> str:
    """Newlines and tabs stay; of a line that was written over (a progress bar) the last form stays."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").rstrip("\r")
    return _CONTROLS.sub("", _REWRITTEN.sub("", text))


def one_line(text: str, most: int) -> str:
    """Of at most `most` characters, with an ellipsis where it was cut."""
    line = " ".join(plain(text[: most * 4]).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
