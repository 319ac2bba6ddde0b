"""Lists folders and searches file contents, bounded."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeAlias

import regex

from errand.engine.tools.code.text_file import decode
from errand.engine.tools.files.file_walk import (
    WALK_TIMEOUT_S,
    LeavesOut,
    LeftOut,
    TooLong,
    is_file,
    is_folder,
    matches,
    walk,
)
from errand.engine.tools.files.quoted_name import quoted
from errand.engine.tools.patterns import compile_pattern
from errand.engine.tools.results import ToolError
from errand.system.regular_file import FileTooLarge, open_regular, read_listed

MAX_LISTED_FILES = 500

MAX_HITS = 200
_MAX_LINE_LENGTH = 300
_MAX_FILE_BYTES = 5_000_000  # per file in a folder, and per piece of a file named directly, such as a long output
_PATIENCE_S = 10.0
_SLICE_S = 0.25
_NARROWER = "use a simpler pattern or a smaller folder"


@dataclass(frozen=True, slots=True)
class FolderListing:
    """One entry per line; folders end in a slash. `more` says why entries are omitted, `notes` what is left out."""

    lines: list[str]
    more: str = ""
    notes: tuple[str, ...] = ()


def list_files(
    folder: Path, shown: str, glob: str, is_cancelled: Callable[[], bool], leaves_out: LeavesOut
) -> FolderListing:
    """Without a pattern the content of the folder itself, with one everything below it.

    `shown` is put before the names, so that they are paths for the next call.
    """
    if not folder.is_dir():
        raise ToolError(f"{folder} is a file, not a folder. Use the action read.")
    lines: list[str] = []
    left_out = LeftOut()
    more = ""
    try:
        for name in (
            _below(folder, glob, is_cancelled, leaves_out, left_out)
            if glob
            else _inside(folder, is_cancelled, leaves_out)
        ):
            if len(lines) == MAX_LISTED_FILES:
                more = "there are more; narrow the path or the glob"
                break
            lines.append(quoted(f"{shown}{name}"))
    except TooLong as error:
        at = quoted(f"{shown}{error.at}")
        more = f"stopped after {WALK_TIMEOUT_S:g} s at {at}; list a smaller folder"
    return FolderListing(lines, more, tuple(left_out.notes(shown)))


def _inside(folder: Path, is_cancelled: Callable[[], bool], leaves_out: LeavesOut) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            in_order = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise ToolError(f"{folder}: {error.strerror}") from error
    for entry in in_order:
        if is_cancelled():
            raise ToolError("Operation aborted")
        if not leaves_out(entry.path, is_folder(entry, follow_links=False)):
            yield _marked(entry, entry.name)


def _below(
    folder: Path, glob: str, is_cancelled: Callable[[], bool], leaves_out: LeavesOut, left_out: LeftOut
) -> Iterator[str]:
    for name, entry in walk(folder, is_cancelled, leaves_out, left_out):
        if matches(name, glob):
            yield _marked(entry, name)


def _marked(entry: "os.DirEntry[str]", name: str) -> str:
    return f"{name}/" if is_folder(entry) else name


@dataclass(slots=True)
class SearchResult:
    """`lines` are `path:line: text`. `more` is the reason for an early end; `too_large` files were left out.

    `left_out` is what the walk did not look into.
    """

    lines: list[str] = field(default_factory=list[str])
    files: int = 0
    more: str = ""
    too_large: int = 0
    left_out: LeftOut = field(default_factory=LeftOut)

    def notes(self, prefix: str) -> Iterator[str]:
        """Return a remark on files and folders that were not searched; `prefix` is put before names."""
        if self.too_large:
            files = "1 file" if self.too_large == 1 else f"{self.too_large:,} files"
            yield f"{files} of more than {_MAX_FILE_BYTES // 1_000_000} MB left out; to search one, give it as path"
        yield from self.left_out.notes(prefix)


def search(
    root: Path,
    shown: str,
    pattern: str,
    literal: bool,
    glob: str,
    is_cancelled: Callable[[], bool],
    leaves_out: LeavesOut,
) -> SearchResult:
    """Search a file, or all text files below a folder, named after `shown`. Stops soon after `is_cancelled`."""
    try:
        compiled = compile_pattern(regex.escape(pattern) if literal else pattern, regex.MULTILINE)
    except ValueError as error:
        advice = "Search for a part of it." if literal else "Set literal to search for it as text."
        raise ToolError(f"The pattern is no usable regular expression: {error}. {advice}") from error
    deadline = time.monotonic() + _PATIENCE_S
    result = SearchResult()
    try:
        for relative, texts in _files(root, glob, is_cancelled, leaves_out, result):
            lines: list[str] = []
            name = f"{shown}{relative}"
            try:
                for text, before in texts:
                    most = MAX_HITS - len(result.lines) - len(lines)
                    if most <= 0 or is_cancelled():
                        break
                    matches = _matches(compiled, text, deadline, is_cancelled)
                    lines += _hits(matches, text, name, most, before)
            except TimeoutError:
                result.lines += lines
                result.more = (
                    f"stopped after {_PATIENCE_S:g} s at {quoted(name)}; use a simpler pattern or a smaller folder"
                )
                break
            result.lines += lines
            result.files += bool(lines)
            if len(result.lines) >= MAX_HITS:
                result.more = f"stopped at {MAX_HITS} hits; narrow the pattern, the path or the glob"
                break
    except TooLong as error:
        at = quoted(f"{shown}{error.at}")
        result.more = f"stopped after {WALK_TIMEOUT_S:g} s at {at}; search a smaller folder"
    if is_cancelled():
        raise ToolError("Operation aborted")
    return result


# The texts of a file, each with the number of lines before it.
_Texts: TypeAlias = Iterable[tuple[str, int]]


def _files(
    root: Path, glob: str, is_cancelled: Callable[[], bool], leaves_out: LeavesOut, found: SearchResult
) -> Iterator[tuple[str, _Texts]]:
    if root.is_file():
        yield root.name, _texts_of_asked(root)
        return
    for name, entry in walk(root, is_cancelled, leaves_out, found.left_out):
        if not is_file(entry) or (glob and not matches(name, glob)):
            continue
        try:
            file = decode(read_listed(entry.path, _MAX_FILE_BYTES))
        except FileTooLarge:
            found.too_large += 1
            continue
        except FileNotFoundError:
            continue
        except OSError:
            found.left_out.unreadable += 1
            continue
        if file is not None:
            yield name, ((file.text, 0),)


def _texts_of_asked(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the file in pieces, since a file that was named directly may be large."""
    try:
        with open_regular(path, follow_links=False) as opened:
            yield from _pieces(opened)
    except OSError:
        return


def _pieces(file: BinaryIO) -> Iterator[tuple[str, int]]:
    """Split at line ends, except for lines longer than a piece."""
    rest, before = b"", 0
    while data := file.read(_MAX_FILE_BYTES):
        joined = rest + data
        end = joined.rfind(b"\n") + 1 if len(data) == _MAX_FILE_BYTES else 0
        piece, rest = (joined[:end], joined[end:]) if end else (joined, b"")
        decoded = decode(piece)
        if decoded is None:
            return
        yield decoded.text, before
        before += decoded.text.count("\n")
    if rest and (decoded := decode(rest)) is not None:
        yield decoded.text, before


def _matches(
    compiled: "regex.Pattern[str]", text: str, deadline: float, is_cancelled: Callable[[], bool]
) -> Iterator["regex.Match[str]"]:
    """Search in slices of time, each longer than the last: nothing else interrupts a match that does not end."""
    begin, slice_s = 0, _SLICE_S
    while not is_cancelled():
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        try:
            for match in compiled.finditer(text, begin, concurrent=True, timeout=min(left, slice_s)):
                yield match
                begin = max(match.end(), match.start() + 1)
        except TimeoutError:
            slice_s *= 2
        else:
            return


def _hits(matches: Iterable["regex.Match[str]"], text: str, name: str, most: int, before: int) -> Iterator[str]:
    """Yield at most one hit per line; `before` is the number of lines before the text."""
    line, counted, end = before + 1, 0, -1
    for match in matches:
        if most <= 0:
            return
        if match.start() <= end:
            continue
        line += text.count("\n", counted, match.start())
        counted = match.start()
        end = text.find("\n", match.start())
        end = len(text) if end < 0 else end
        start = text.rfind("\n", 0, match.start()) + 1
        yield f"{quoted(name)}:{line}: {_cut(text, start, end, match.start())}"
        most -= 1


def _cut(text: str, start: int, end: int, at: int) -> str:
    """Return the line, or for a very long line the part around the hit."""
    if end - start <= _MAX_LINE_LENGTH:
        return text[start:end]
    first = max(start, at - _MAX_LINE_LENGTH // 3)
    last = min(end, first + _MAX_LINE_LENGTH)
    return f"{'…' if first > start else ''}{text[first:last]}{'…' if last < end else ''}"
