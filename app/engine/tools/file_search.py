"""Searching texts of files for a pattern."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import regex

from app.engine.tools.base import ToolError
from app.engine.tools.plain_text import tidy_name
from app.engine.tools.text_file import decode
from app.engine.tools.walk import LONGEST_S, TooLong, matches, walk
from app.regular_file import read_regular

MOST_HITS = 200
_LONGEST_LINE = 300
_LARGEST = 5_000_000
_LARGEST_ASKED = 250_000_000  # a file that was named itself, such as a long output
_PATIENCE_S = 10.0


@dataclass(slots=True)
class Found:
    """`lines` are `path:line: text`. `more` says that the search ended early, and why."""

    lines: list[str] = field(default_factory=list[str])
    files: int = 0
    more: str = ""


def search(root: Path, pattern: str, literal: bool, glob: str, is_cancelled: Callable[[], bool]) -> Found:
    """Search a file, or all text files below a folder. Stops soon after `is_cancelled` turns true."""
    try:
        compiled = regex.compile(regex.escape(pattern) if literal else pattern, regex.MULTILINE)
    except regex.error as error:
        raise ToolError(
            f"The pattern is no regular expression: {error}. Set literal to search for it as text."
        ) from error
    deadline = time.monotonic() + _PATIENCE_S
    found = Found()
    try:
        for name, path in _files(root, glob, is_cancelled):
            text = _text(path, _LARGEST_ASKED if path == root else _LARGEST)
            if text is None:
                continue
            try:
                lines = list(_hits(compiled, text, name, MOST_HITS - len(found.lines), deadline))
            except TimeoutError:
                found.more = f"stopped after {_PATIENCE_S:g} s at {name}; use a simpler pattern or a smaller folder"
                break
            found.lines += lines
            found.files += bool(lines)
            if len(found.lines) >= MOST_HITS:
                found.more = f"stopped at {MOST_HITS} hits; narrow the pattern, the path or the glob"
                break
    except TooLong as error:
        found.more = f"stopped after {LONGEST_S:g} s at {tidy_name(error.at)}; search a smaller folder"
    return found


def _files(root: Path, glob: str, is_cancelled: Callable[[], bool]) -> Iterator[tuple[str, Path]]:
    if root.is_file():
        yield root.name, root
        return
    for name, entry in walk(root, is_cancelled):
        if entry.is_file(follow_symlinks=False) and (not glob or matches(name, glob)):
            yield tidy_name(name), Path(entry.path)


def _text(path: Path, largest: int) -> str | None:
    try:
        data = read_regular(path, largest, follow_links=False)
    except OSError:
        return None
    file = decode(data)
    return file.text if file else None


def _hits(compiled: "regex.Pattern[str]", text: str, name: str, most: int, deadline: float) -> Iterator[str]:
    """One hit for each line at most."""
    line, counted, end = 1, 0, -1
    left = max(0.01, deadline - time.monotonic())
    for match in compiled.finditer(text, concurrent=True, timeout=left):
        if most <= 0:
            return
        if match.start() <= end:
            continue
        line += text.count("\n", counted, match.start())
        counted = match.start()
        end = text.find("\n", match.start())
        end = len(text) if end < 0 else end
        start = text.rfind("\n", 0, match.start()) + 1
        yield f"{name}:{line}: {_cut(text, start, end, match.start())}"
        most -= 1


def _cut(text: str, start: int, end: int, at: int) -> str:
    """The line, or of a very long one the part around the hit."""
    if end - start <= _LONGEST_LINE:
        return text[start:end]
    first = max(start, at - _LONGEST_LINE // 3)
    last = min(end, first + _LONGEST_LINE)
    return f"{'…' if first > start else ''}{text[first:last]}{'…' if last < end else ''}"
