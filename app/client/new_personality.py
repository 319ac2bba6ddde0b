"""A personality that becomes a new one: its name is nobody's yet, and of its tools those are taken that there are."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import uuid4

import msgspec

from app.client.characters import plain
from app.client.personality_file import NotAPersonality
from app.protocol.agents import Personality

_LONGEST = 90  # there is room behind it for a number


@dataclass(frozen=True, slots=True)
class Arrival:
    """`left_out` are tools that it names and that there are not."""

    personality: Personality
    left_out: tuple[str, ...]


def arrival(found: Personality, there: Iterable[Personality], tools: Collection[str]) -> Arrival:
    """What comes of a file: a new one, whatever id it had.

    Raises `NotAPersonality` where it may use nothing but tools that there are not: without any it could use all.
    """
    known = tuple(tool for tool in found.tools if tool in tools)
    if found.tools and not known:
        raise NotAPersonality(f"It needs tools that there are not: {', '.join(found.tools)}.")
    name = free_name(_sayable(found.name)[:_LONGEST].strip() or "Imported", there)
    taken = msgspec.structs.replace(found, id=uuid4().hex, name=name, tools=known)
    return Arrival(taken, tuple(tool for tool in found.tools if tool not in known))


def _sayable(name: str) -> str:
    """In one line, without what the engine refuses in a name: a file may hold anything."""
    line = " ".join(plain(name).replace("@", " ").split())
    return "".join(character for character in line if character.isprintable())


def free_name(wanted: str, there: Iterable[Personality]) -> str:
    """The name, with a number behind it where it is taken."""
    taken = {personality.name.casefold() for personality in there}
    names = (wanted, *(f"{wanted} {number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name.casefold() not in taken)
