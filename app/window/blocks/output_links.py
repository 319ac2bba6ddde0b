"""Addresses and paths in a program's output: the stretches that can be clicked, and what each leads to."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# An address; or a path that is absolute or ends in a name with an ending, with a line number behind it or not.
_LINK = re.compile(
    r"(?P<web>https?://[^\s<>\"'`\x00-\x1f]+)"
    r"|(?<![\w/.:~-])(?P<path>(?:~?/|\.{1,2}/)?(?:[\w.@+-]+/)+[\w.@+-]*\.\w{1,8}(?::\d+){0,2}"
    r"|~?/(?:[\w.@+-]+/)+[\w.@+-]+(?::\d+){0,2})"
)
_AFTER = ".,;:!?)]}"
# Longer outputs are shown by their end alone.
_LONGEST = 40_000


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of the text; `link` is empty where it leads nowhere."""

    text: str
    link: str = ""


def linked(text: str) -> Iterator[Piece]:
    """The whole text in order, cut where links begin and end."""
    done = 0
    for match in _LINK.finditer(text) if len(text) <= _LONGEST else ():
        link = match.group().rstrip(_AFTER)
        if match.start() > done:
            yield Piece(text[done : match.start()])
        yield Piece(link, link)
        done = match.start() + len(link)
    if done < len(text):
        yield Piece(text[done:])
