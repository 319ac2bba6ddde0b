"""Line ends in a text with both kinds: a replacement gets those of the lines where it stands."""

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

# Start and end of a place in a text.
Span: TypeAlias = tuple[int, int]

_MAX_PLACES = 100_000
_MAX_PATTERN = 100_000


def spans_of(text: str, old: str) -> Iterator[Span]:
    """Return the positions of `old` in the text, in order."""
    at = text.find(old)
    while at >= 0:
        yield at, at + len(old)
        at = text.find(old, at + len(old))


def spans_with_other_line_ends(text: str, old: str) -> list[Span]:
    """Return the positions of `old` in the text but for the kind of its line ends; none in texts with one kind."""
    if "\n" not in old or "\r\n" not in text or len(old) > _MAX_PATTERN:
        return []
    pattern = "\r?\n".join(map(re.escape, re.split("\r?\n", old)))
    return [match.span() for match in re.finditer(pattern, text)]


def replaced(text: str, old: str, new: str, count: int) -> str:
    """Return the text with `new` for each of the `count` times that `old` is there."""
    if "\n" not in new or "\r\n" not in text or count > _MAX_PLACES:
        return text.replace(old, new)
    return replaced_at(text, spans_of(text, old), old, new)


def replaced_at(text: str, spans: Iterable[Span], old: str, new: str) -> str:
    """Return the text with `new` at these places, with the line ends of each, unless `old` or `new` has its own."""
    parts: list[str] = []
    at = 0
    has_its_own = "\r" in old or "\r" in new
    for start, end in spans:
        is_windows = not has_its_own and _has_windows_ends(text, start)
        parts += [text[at:start], new.replace("\n", "\r\n") if is_windows else new]
        at = end
    return "".join((*parts, text[at:]))


def with_line_ends_of(replaced_text: str, new: str) -> str:
    """Return whole lines that replace `place`, which may end before a line feed, with its line ends."""
    first, line_feed, _ = replaced_text.partition("\n")
    if not (first if line_feed else replaced_text).endswith("\r"):
        return new
    *lines, last = (line.removesuffix("\r") for line in new.split("\n"))
    return "\n".join((*(f"{line}\r" for line in lines), f"{last}\r" if replaced_text.endswith("\r") else last))


def _has_windows_ends(text: str, start: int) -> bool:
    """Return True if the first line end from here on, or else the last one before, is of that kind."""
    at = text.find("\n", start)
    if at < 0:
        at = text.rfind("\n", 0, start)
    return at > 0 and text[at - 1] == "\r"
