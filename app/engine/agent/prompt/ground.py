"""The folders that speak for a workspace: itself and those above it that belong to the same person and project."""

import os
import sys
from itertools import takewhile
from pathlib import Path

from app.regular_file import read_beginning


def folders(workspace: Path, home: Path) -> tuple[Path, ...]:
    """The outermost first: from the root of its repository, or from below the home directory, else itself alone.

    A folder of somebody else ends the way up: in a shared place anybody could put words for others there.
    """
    way = _own((workspace, *workspace.parents))
    for count, folder in enumerate(way, start=1):
        if _is_there(folder / ".git"):
            return tuple(reversed(way[:count]))
        if folder == home:
            return tuple(reversed(way[: max(1, count - 1)]))
    return (workspace,)


def read_inside(file: Path, folder: Path, most: int) -> bytes | None:
    """At most `most` bytes and one more; None where there is no such file, or where a link leads out of the folder."""
    try:
        real = file.resolve(strict=True)
        return read_beginning(real, most + 1, follow_links=False) if real.is_relative_to(folder) else None
    except (OSError, RuntimeError):  # RuntimeError: a circle of links
        return None


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:  # in a folder where one may not look
        return False


def _own(way: tuple[Path, ...]) -> tuple[Path, ...]:
    if sys.platform == "win32":
        return way
    return (way[0], *takewhile(_is_own, way[1:]))


def _is_own(folder: Path) -> bool:
    try:
        return folder.stat().st_uid == os.getuid()
    except OSError:
        return False
