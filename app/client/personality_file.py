"""A personality as a JSON file: to give to somebody, or to take along."""

from pathlib import Path

import msgspec

from app.protocol.agents import Personality

_LARGEST = 1_000_000


class NotAPersonality(Exception):
    """The file holds none; the text says why."""


def write(path: Path, personality: Personality) -> None:
    """Raises OSError."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(personality)) + b"\n")


def read(path: Path) -> Personality:
    """Raises `NotAPersonality`, with words for the person."""
    if path.exists() and not path.is_file():
        raise NotAPersonality(f"{path} is no file.")  # a pipe would be waited for without end
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise NotAPersonality(f"{path} cannot be read: {error.strerror}.") from error
    try:
        return msgspec.json.decode(data[:_LARGEST], type=Personality)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotAPersonality(f"{path} holds no personality that this version can read ({error}).") from error
