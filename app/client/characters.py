"""Text of models and tools made safe to show: hidden characters left out, or written out where a person decides."""

import re

# Escape sequences and control characters could move the cursor, hide a command or change the window's title; marks
# of writing direction could show a command in another order than it runs.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Blanks that look like others and characters without width: two commands that look the same must not differ.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u061c\u115f\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
)


def plain(text: str) -> str:
    """The text without escape sequences and control characters; newlines and tabs stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def output_text(text: str) -> str:
    """A program's output as a terminal leaves it: of a line written over (a progress bar) the last form."""
    text = text.replace("\r\n", "\n").rstrip("\r")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return plain(text)


def exact(text: str) -> str:
    """The text with every hidden character written out, for what a person is asked to allow."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
