"""Some lines of a file, for a model to read: bounded, and cheap for a part of a very large file."""

from dataclasses import dataclass
from typing import BinaryIO

from app.engine.tools.base import ToolError
from app.engine.tools.text_file import decode

MOST_LINES = 2_000
MOST_CHARACTERS = 50_000
LARGEST = 5_000_000
# No character has more than four bytes: a line of so many characters is seen to be cut.
_MOST_BYTES = 4 * MOST_CHARACTERS + 4
_PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Window:
    """`first` and `last` count from 1; `total` is None where counting would mean to read a very large file."""

    text: str
    first: int
    last: int
    total: int | None
    cut: bool = False

    @property
    def note(self) -> str:
        """What is not shown and how to get it; empty if this is the whole file."""
        if self.cut:
            return f"[line {self.last} is cut after {MOST_CHARACTERS:,} characters; use the shell to see the rest]"
        if self.first == 1 and self.last == self.total:
            return ""
        more = self.total is None or self.last < self.total
        of = f" of {self.total:,}" if self.total is not None else ""
        return f"[lines {self.first}–{self.last}{of}{f'; go on with start_line={self.last + 1}' if more else ''}]"


def window(data: bytes, first: int, last: int) -> Window | None:
    """Lines `first` to `last` (0 for the end) of a file's content; None if it is binary."""
    file = decode(data)
    if file is None:
        return None
    lines = file.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if first > max(1, len(lines)):
        raise ToolError(f"The file has {len(lines)} lines; start_line {first} is after its end.")
    return _bounded(lines[first - 1 : last or None], first, len(lines))


def window_of_large(file: BinaryIO, first: int, last: int) -> Window | None:
    """The same for a file above LARGEST, of which only the part up to `last` is read, in pieces."""
    if b"\0" in file.read(8192):
        return None
    file.seek(0)
    if not _skip_lines(file, first - 1):
        raise ToolError(f"start_line {first} is after the end of the file.")
    data = file.read(_MOST_BYTES)
    lines = data.split(b"\n")
    if len(data) == _MOST_BYTES and len(lines) > 1:
        lines.pop()  # it may go on
    elif lines[-1] == b"":
        lines.pop()
    count = min(MOST_LINES, last - first + 1) if last else MOST_LINES
    return _bounded([line.decode("utf-8", "replace").rstrip("\r") for line in lines[:count]], first, None)


def _skip_lines(file: BinaryIO, count: int) -> bool:
    """Go to where the line after so many begins; False where the file ends before it."""
    while True:
        begin = file.tell()
        piece = file.read(_PIECE)
        if count == 0 or not piece:
            file.seek(begin)
            return bool(piece)
        found = piece.count(b"\n")
        if found < count:
            count -= found
            continue
        at = -1
        for _ in range(count):
            at = piece.index(b"\n", at + 1)
        file.seek(begin + at + 1)
        count = 0


def _bounded(lines: list[str], first: int, total: int | None) -> Window:
    size = 0
    chosen: list[str] = []
    for line in lines[:MOST_LINES]:
        size += len(line) + 1
        if size > MOST_CHARACTERS:
            break
        chosen.append(line)
    if lines and not chosen:
        return Window(lines[0][:MOST_CHARACTERS], first, first, total, cut=True)
    return Window("\n".join(chosen), first, first + len(chosen) - 1, total)
