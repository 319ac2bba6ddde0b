"""Makes untrusted text safe to display."""

import re

from errand.text.visible_text import escape_hidden

# Escape sequences and control characters could move the cursor, hide a command or change the window's title. Marks of
# writing direction could display a command in another order than it runs.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Remove escape sequences and control characters; newlines and tabs stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def output_text(text: str) -> str:
    """Return a program's output as a terminal shows it: only the last version of an overwritten line (a progress
    bar).
    """
    text = text.replace("\r\n", "\n").rstrip("\r")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return plain(text)


def escape_hidden_line(text: str) -> str:
    """`escape_hidden` on one line, with a symbol for each newline."""
    return escape_hidden(text).replace("\t", " ").replace("\n", " ↵ ")
