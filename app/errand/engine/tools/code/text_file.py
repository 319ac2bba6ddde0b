"""Text files: encoding, newlines, and a bounded range of lines."""

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from errand.engine.tools.results import ToolError

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_BOM_STARTS = tuple(bom for bom, _ in _BOMS)

MAX_LINES = 2_000
MAX_CHARACTERS = 50_000
MAX_FILE_BYTES = 5_000_000
# A character has at most four bytes, so this is enough to detect a line that exceeds the limit.
_MAX_READ_BYTES = 4 * MAX_CHARACTERS + 4
_PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TextFile:
    """`text` uses \\n for the file's `newline`; mixed newlines stay unchanged."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"

    def encode(self, text: str) -> bytes:
        """Encode another text like this file. Raises UnicodeEncodeError if its encoding lacks a character."""
        if self.newline == "\r\n":
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return self.bom + text.encode(self.encoding)


def decode(data: bytes) -> TextFile | None:
    """Decode a file; None if it is binary. Text without a BOM that is not UTF-8 is read as Latin-1."""
    bom, encoding = b"", "utf-8"
    if data.startswith(_BOM_STARTS):
        bom, encoding = next((bom, name) for bom, name in _BOMS if data.startswith(bom))
    if b"\0" in data and not encoding.startswith("utf-16"):
        return None
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError:
        bom, encoding, text = b"", "latin-1", data.decode("latin-1")
    windows = text.count("\r\n")
    if windows and windows == text.count("\n"):
        return TextFile(text.replace("\r\n", "\n"), encoding, bom, "\r\n")
    return TextFile(text, encoding, bom)


@dataclass(frozen=True, slots=True)
class LineRange:
    """`first` and `last` count from 1; `total` is None if counting would require reading a very large file."""

    text: str
    first: int
    last: int
    total: int | None
    cut: bool = False

    @property
    def note(self) -> str:
        """Return which lines are omitted and how to read them; empty if this is the whole file."""
        if self.cut:
            return f"[line {self.last} is cut after {MAX_CHARACTERS:,} characters; use the shell to see the rest]"
        if self.first == 1 and self.last == self.total:
            return ""
        more = self.total is None or self.last < self.total
        of = f" of {self.total:,}" if self.total is not None else ""
        return f"[lines {self.first}–{self.last}{of}{f'; go on with start_line={self.last + 1}' if more else ''}]"


def line_range(data: bytes, first: int, last: int) -> LineRange | None:
    """Lines `first` to `last` (0 for the end) of a file's content; None if it is binary."""
    file = decode(data)
    if file is None:
        return None
    lines = file.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if first > max(1, len(lines)):
        raise _after_end(first, len(lines))
    return _bounded(lines[first - 1 : last or None], first, len(lines))


def window_of_large(file: BinaryIO, first: int, last: int, is_cancelled: Callable[[], bool]) -> LineRange | None:
    """`line_range` for a file above MAX_FILE_BYTES; reads only the part up to `last`, in pieces."""
    if b"\0" in file.read(8192):
        return None
    file.seek(0)
    _skip_lines(file, first - 1, is_cancelled)
    data = file.read(_MAX_READ_BYTES)
    if b"\0" in data:
        return None
    lines = data.split(b"\n")
    total = None
    if len(data) == _MAX_READ_BYTES and len(lines) > 1:
        lines.pop()  # it may be incomplete
    elif lines[-1] == b"":
        lines.pop()
    if len(data) < _MAX_READ_BYTES:
        total = first - 1 + len(lines)
    count = min(MAX_LINES, last - first + 1) if last else MAX_LINES
    return _bounded([line.decode("utf-8", "replace").rstrip("\r") for line in lines[:count]], first, total)


def _skip_lines(file: BinaryIO, count: int, is_cancelled: Callable[[], bool]) -> None:
    """Seek to the start of the line after `count` lines. Raises ToolError if there is none."""
    before, last = 0, b""
    while True:
        if is_cancelled():
            raise ToolError("Operation aborted")
        begin = file.tell()
        piece = file.read(_PIECE)
        if not piece:
            raise _after_end(count + 1, before + (last != b"\n"))
        newlines = piece.count(b"\n")
        if before + newlines < count:
            before, last = before + newlines, piece[-1:]
            continue
        at = -1
        for _ in range(count - before):
            at = piece.index(b"\n", at + 1)
        file.seek(begin + at + 1)
        if file.read(1):
            file.seek(begin + at + 1)
            return
        raise _after_end(count + 1, count)


def _after_end(first: int, lines: int) -> ToolError:
    has = f"has {lines:,} lines" if lines > 1 else "has one line" if lines else "is empty"
    return ToolError(f"The file {has}: start_line {first} is after its end.")


def _bounded(lines: list[str], first: int, total: int | None) -> LineRange:
    size = 0
    chosen: list[str] = []
    for line in lines[:MAX_LINES]:
        size += len(line) + 1
        if size > MAX_CHARACTERS:
            break
        chosen.append(line)
    if lines and not chosen:
        return LineRange(lines[0][:MAX_CHARACTERS], first, first, total, cut=True)
    return LineRange("\n".join(chosen), first, first + len(chosen) - 1, total)
