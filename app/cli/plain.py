"""Text from models and tools made safe and short enough for a terminal."""

import unicodedata
from pathlib import Path

from app.client.characters import exact as exact
from app.client.characters import exact_line as exact_line
from app.client.characters import plain as plain


def one_line(text: str, width: int) -> str:
    """The text on one line, cut with an ellipsis to `width` columns."""
    return cut(" ".join(plain(text).split()), width)


def cut(text: str, width: int) -> str:
    if columns(text) <= width:
        return text
    used, end = 1, 0
    for character in text:
        used += columns(character)
        if used > width:
            break
        end += 1
    return text[:end].rstrip() + "…"


def wrapped(text: str, width: int) -> str:
    """The text with lines longer than `width` broken at blanks; a word that is longer still stays whole."""
    return "".join(_wrapped_line(line, width) for line in text.splitlines(keepends=True))


def _wrapped_line(line: str, width: int) -> str:
    if visible_columns(line.rstrip("\n")) <= width:
        return line
    lines, used = [""], 0
    for word in line.rstrip("\n").split(" "):
        size = visible_columns(word)
        if used and used + 1 + size > width:
            lines.append(word)
            used = size
        else:
            lines[-1] += f" {word}" if used else word
            used += size + (1 if used else 0)
    return "\n".join(lines) + line[len(line.rstrip("\n")) :]


def visible_columns(text: str) -> int:
    """How many columns a text with colours takes."""
    return columns(plain(text))


def columns(text: str) -> int:
    """How many terminal columns a text takes: wide East Asian characters and emoji take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(character) for character in text)


def _columns_of(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def short_path(path: str) -> str:
    """A path with the home directory as `~`."""
    home = str(Path.home())
    inside = path == home or path.startswith(home.rstrip("/\\") + ("\\" if "\\" in home else "/"))
    return "~" + path[len(home) :] if inside else path
