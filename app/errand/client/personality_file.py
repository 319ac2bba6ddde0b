"""Reads and writes a personality as a JSON file; an imported one gets a new id and a unique name."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import msgspec

from errand.client.safe_text import plain
from errand.protocol.agents import Personality
from errand.system.paths import default_paths
from errand.system.regular_file import atomic_writer, check_write_path, read_regular
from errand.text.translation import tr

_MAX_FILE_BYTES = 1_000_000

_MAX_NAME_LENGTH = 90  # leaves space for a number after it


class NotAPersonality(Exception):
    """The file has no valid personality; the text has the reason."""


def write(path: Path, personality: Personality, *, overwrite: bool) -> None:
    """Raises OSError, with a text for people in its `strerror`."""
    check_write_path(path, default_paths(), overwrite=overwrite)
    with atomic_writer(path, overwrite=overwrite, mode=0o666) as file:
        file.write(msgspec.json.format(msgspec.json.encode(personality)) + b"\n")


def read(path: Path) -> Personality:
    """Raises `NotAPersonality`, with a text for people."""
    try:
        data = read_regular(path, _MAX_FILE_BYTES)
    except OSError as error:
        raise NotAPersonality(tr("Can't read {path}: {error}.").format(path=path, error=error.strerror)) from error
    try:
        return msgspec.json.decode(data, type=Personality)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotAPersonality(
            tr("{path} isn't a personality that this version can read ({error}).").format(path=path, error=error)
        ) from error


@dataclass(frozen=True, slots=True)
class NewPersonality:
    """`left_out` are unknown tools that it lists."""

    personality: Personality
    left_out: tuple[str, ...]


def new_personality(found: Personality, existing: Iterable[Personality], tools: Collection[str]) -> NewPersonality:
    """Create a new personality from a file, with a new id.

    Raises `NotAPersonality` if all its tools are unknown: an empty list would allow all tools.
    """
    available = tuple(tool for tool in found.tools if tool in tools)
    if found.tools and not available:
        raise NotAPersonality(tr("Unknown tools: {tools}.").format(tools=", ".join(found.tools)))
    name = free_name(_clean_name(found.name)[:_MAX_NAME_LENGTH].strip() or "Imported", existing)
    personality = msgspec.structs.replace(found, id=uuid4().hex, name=name, tools=available)
    return NewPersonality(personality, tuple(tool for tool in found.tools if tool not in available))


def _clean_name(name: str) -> str:
    """One line, without characters that the engine refuses in a name: a file may contain anything."""
    line = " ".join(plain(name).replace("@", " ").split())
    return "".join(character for character in line if character.isprintable())


def free_name(wanted: str, existing: Iterable[Personality]) -> str:
    """Return the name, with a number appended if it exists."""
    taken = {personality.name.casefold() for personality in existing}
    names = (wanted, *(f"{wanted} {number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name.casefold() not in taken)
