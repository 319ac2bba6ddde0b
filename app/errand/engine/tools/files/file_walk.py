"""Walks a folder in bounded time and matches glob patterns."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from errand.engine.tools.files.quoted_name import quoted
from errand.engine.tools.results import ToolError

WALK_TIMEOUT_S = 30.0

# Version control, generated files, and folders with secrets.
SKIPPED = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    | {".ssh", ".gnupg", ".aws"}
)

# Of these, what nobody looks for among the files that a repository keeps.
_OF_PROGRAMS = SKIPPED - {"node_modules", ".venv", ".ssh", ".gnupg", ".aws"}
_MAX_NAMED = 8


# Takes a path and whether it is a folder; True to skip it.
LeavesOut: TypeAlias = Callable[[str, bool], bool]


@dataclass(slots=True)
class LeftOut:
    """The entries that a walk left out: folders by their names, which stand in `SKIPPED`, and unreadable ones."""

    folders: list[str] = field(default_factory=list[str])
    unreadable: int = 0

    def notes(self, prefix: str) -> Iterator[str]:
        """Sentences about it; `prefix` is put before the names, so that they are paths for the next call."""
        if self.folders:
            names = ", ".join(quoted(f"{prefix}{name}") for name in self.folders[:_MAX_NAMED])
            more = len(self.folders) - _MAX_NAMED
            listed = f"{names} and {more:,} more folders" if more > 0 else names
            yield f"left out: {listed}; to look into one, give it as path"
        if self.unreadable:
            files = "1 file or folder" if self.unreadable == 1 else f"{self.unreadable:,} files or folders"
            yield f"{files} could not be read"


class TooLong(Exception):
    """A walk exceeded its time limit; `at` is the path it had reached."""

    def __init__(self, at: str) -> None:
        super().__init__(at)
        self.at = at


def keep_all(path: str, is_folder: bool) -> bool:
    """Leave nothing out. A walk still skips the names in `SKIPPED`."""
    return False


def walk(
    root: Path,
    is_cancelled: Callable[[], bool],
    leaves_out: LeavesOut = keep_all,
    left_out: LeftOut | None = None,
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Files and folders below `root`, sorted, folders before their content, each with its path relative to `root`.

    Yields links but never follows them. Raises ToolError soon after `is_cancelled` turns true, `TooLong` after
    `WALK_TIMEOUT_S`. Adds what it skips to `left_out`, but not what `leaves_out` says.
    """
    left_out = left_out or LeftOut()
    is_whole = leaves_out == keep_all
    give_up_at = time.monotonic() + WALK_TIMEOUT_S
    # Iterative, since a tree may be deeper than Python's recursion limit.
    open_folders = [iter(_entries(os.fspath(root), left_out))]
    start = len(os.path.join(root, ""))
    while open_folders:
        entry = next(open_folders[-1], None)
        if entry is None:
            open_folders.pop()
            continue
        if is_cancelled():
            raise ToolError("Operation aborted")
        if time.monotonic() > give_up_at:
            raise TooLong(entry.path[start:])
        is_inner = is_folder(entry, follow_links=False)
        if leaves_out(entry.path, is_inner):
            continue
        if entry.name in SKIPPED:
            if is_inner and (is_whole or entry.name not in _OF_PROGRAMS):
                left_out.folders.append(entry.path[start:])
            continue
        yield entry.path[start:], entry
        if is_inner:
            open_folders.append(iter(_entries(entry.path, left_out)))


def is_folder(entry: "os.DirEntry[str]", *, follow_links: bool = True) -> bool:
    """Return False for a broken or circular link, and without permission."""
    try:
        return entry.is_dir(follow_symlinks=follow_links)
    except OSError:
        return False


def is_file(entry: "os.DirEntry[str]") -> bool:
    """Return True for a regular file; False for a link to one, and without permission."""
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


def _entries(folder: str, left_out: LeftOut) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []  # deleted meanwhile
    except OSError:
        left_out.unreadable += 1
        return []


def matches(path: str, pattern: str) -> bool:
    """Glob syntax as in ripgrep: without a slash it matches the name, `**` spans folders, {a,b} are alternatives."""
    return any(_matches_one(path, choice) for choice in _choices(pattern))


def _matches_one(path: str, pattern: str) -> bool:
    if "/" not in pattern:
        return fnmatchcase(path.rpartition("/")[2], pattern)
    return _match_parts(path.split("/"), pattern.removeprefix("./").lstrip("/").split("/"))


def _match_parts(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    """Match the parts of a path one by one; `**` stands for any number of them."""
    # reached[i]: the patterns so far match the first i parts.
    reached = [True] + [False] * len(parts)
    for before_it, pattern in pairwise(["", *patterns]):
        if pattern == before_it == "**":
            continue
        if True not in reached:
            return False
        if pattern == "**":
            first = reached.index(True)
            reached = [index >= first for index in range(len(reached))]
        else:
            reached = [False] + [
                before and fnmatchcase(part, pattern) for before, part in zip(reached, parts, strict=False)
            ]
    return reached[-1]


def _choices(pattern: str) -> list[str]:
    """Return the pattern with {a,b} expanded, up to 64 patterns; braces without a comma are literal."""
    done: list[str] = []
    rest = [pattern]
    while rest and len(done) + len(rest) < 64:
        choice = rest.pop()
        start = choice.find("{")
        end = choice.find("}", start)
        if start < 0 or end < 0 or "," not in choice[start:end]:
            done.append(choice)
        else:
            rest += [choice[:start] + option + choice[end + 1 :] for option in choice[start + 1 : end].split(",")]
    return done + rest
