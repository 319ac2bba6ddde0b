"""A personality as a JSON file: to give to somebody, or to take along."""

from pathlib import Path

import msgspec

from app.paths import default_paths
from app.protocol.agents import Personality
from app.regular_file import check_place, read_regular, written_whole

_LARGEST = 1_000_000


class NotAPersonality(Exception):
    """The file holds none; the text says why."""


def write(path: Path, personality: Personality, *, overwrite: bool) -> None:
    """Raises OSError, with words for the person in its `strerror`."""
    check_place(path, default_paths(), overwrite=overwrite)
    with written_whole(path, overwrite=overwrite, mode=0o666) as file:
        file.write(msgspec.json.format(msgspec.json.encode(personality)) + b"\n")


def read(path: Path) -> Personality:
    """Raises `NotAPersonality`, with words for the person."""
    try:
        data = read_regular(path, _LARGEST)
    except OSError as error:
        raise NotAPersonality(f"{path} cannot be read: {error.strerror}.") from error
    try:
        return msgspec.json.decode(data, type=Personality)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotAPersonality(f"{path} holds no personality that this version can read ({error}).") from error
