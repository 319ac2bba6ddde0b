"""The names of agents: no two of a conversation share one, however it is written."""

import unicodedata
from collections.abc import Iterable
from itertools import count

from app.engine.errors import InvalidParams

_LONGEST = 60


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """`wanted`, or where that is taken the first free one of "Coder 2", "Coder 3"."""
    names = {name.casefold() for name in taken}
    if wanted.casefold() not in names:
        return wanted
    return next(name for number in count(2) if (name := f"{wanted} {number}").casefold() not in names)


def checked_name(given: str) -> str:
    """A name that a person gave, with single blanks. `InvalidParams` for one that cannot be addressed."""
    name = unicodedata.normalize("NFC", " ".join(given.split()))
    if not 1 <= len(name) <= _LONGEST or "@" in name or not name.isprintable():
        raise InvalidParams(f"name: 1 to {_LONGEST} characters in one line, without @.")
    return name
