"""A fenced piece of Markdown: its language and its code."""

import re
from dataclasses import dataclass

_OPENING = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)(?:\n|$)")


@dataclass(frozen=True, slots=True)
class Fence:
    language: str
    code: str


def fence_of(markdown: str) -> Fence | None:
    """The fence that a piece consists of, closed or still streaming; None for any other text."""
    opening = _OPENING.match(markdown)
    if opening is None:
        return None
    words = opening["info"].split()
    code = markdown[opening.end() :].rstrip("\n")
    last = code.rpartition("\n")[2].strip()
    if last and set(last) == {opening["mark"][0]} and len(last) >= len(opening["mark"]):
        code = code[: len(code) - len(code.rpartition("\n")[2])].removesuffix("\n")
    return Fence(words[0].strip("{}.").lower() if words else "", code)
