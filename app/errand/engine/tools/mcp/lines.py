"""Lines of a stream, of bounded length: a longer one is passed over, with its ends for the error about it."""

from collections.abc import Iterator
from dataclasses import dataclass

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
# A stream without a line break is given up after this.
MAX_LINE_BYTES = 32 * 1024 * 1024
_END_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class LongLine:
    """The beginning and the end of a line that is too long to be taken."""

    head: bytes
    tail: bytes


class EndlessLine(Exception):
    """The stream has a line that nothing ends."""

    def __init__(self) -> None:
        super().__init__(f"it sent a line of more than {MAX_LINE_BYTES // 1_048_576} MB")


class LineBuffer:
    """Joins the pieces of a stream and splits them into lines, without the line breaks."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._size = 0
        self._head = b""

    def feed(self, data: bytes) -> Iterator[bytes | LongLine]:
        """Yield the lines that a piece completes. Raises `EndlessLine`."""
        first, *others = data.split(b"\n")
        self._add(first)
        for piece in others:
            yield self._completed()
            self._add(piece)

    def _add(self, piece: bytes) -> None:
        self._line += piece
        self._size += len(piece)
        if self._size > MAX_LINE_BYTES:
            raise EndlessLine
        if self._size > MAX_MESSAGE_BYTES:
            self._head = self._head or bytes(self._line[:_END_BYTES])
            self._line = self._line[-_END_BYTES:]

    def _completed(self) -> bytes | LongLine:
        line, head = bytes(self._line), self._head
        self._line, self._size, self._head = bytearray(), 0, b""
        return LongLine(head, line) if head else line
