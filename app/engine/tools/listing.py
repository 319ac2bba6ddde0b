"""Listing a folder, or the files below it that match a glob pattern."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.engine.tools.base import ToolError
from app.engine.tools.plain_text import tidy_name
from app.engine.tools.walk import LONGEST_S, TooLong, is_folder, matches, walk

MOST = 500


@dataclass(frozen=True, slots=True)
class Listing:
    """One entry a line, relative to the folder; folders end in a slash. `more` says why others are left out."""

    lines: list[str]
    more: str = ""


def list_files(folder: Path, glob: str, is_cancelled: Callable[[], bool]) -> Listing:
    """Without a pattern what stands in the folder itself, with one all below it."""
    if not folder.is_dir():
        raise ToolError(f"{folder} is a file, not a folder. Use the action read.")
    lines: list[str] = []
    try:
        for line in _below(folder, glob, is_cancelled) if glob else _inside(folder):
            if len(lines) == MOST:
                return Listing(lines, "there are more; narrow the path or the glob")
            lines.append(line)
    except TooLong as error:
        return Listing(lines, f"stopped after {LONGEST_S:g} s at {tidy_name(error.at)}; list a smaller folder")
    return Listing(lines)


def _inside(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise ToolError(f"{folder}: {error.strerror}") from error
    return (_line(entry, entry.name) for entry in found)


def _below(folder: Path, glob: str, is_cancelled: Callable[[], bool]) -> Iterator[str]:
    for name, entry in walk(folder, is_cancelled):
        if matches(name, glob):
            yield _line(entry, name)


def _line(entry: "os.DirEntry[str]", name: str) -> str:
    return tidy_name(f"{name}/" if is_folder(entry) else name)
