"""The log of one server: what it wrote to its standard error, and what happened to it. Bounded and without keys."""

from collections import deque
from datetime import UTC, datetime

from errand.engine.tools.plain_text import clean_output
from errand.redaction import RedactedBytes, Redactor

_MOST_BYTES = 128 * 1024
_LONGEST_LINE = 4_096


class ServerLog:
    """The newest lines. Lines of the app begin with a time in brackets."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._stream = RedactedBytes(redactor)
        self._lines: deque[str] = deque()
        self._size = 0
        self._rest = b""

    def text(self) -> str:
        rest = [clean_output(self._rest)] if self._rest else []
        return self._redactor("\n".join((*self._lines, *rest)))

    def note(self, text: str) -> None:
        """A line of the app."""
        self._add(f"[{datetime.now(UTC):%Y-%m-%d %H:%M:%S}] {self._redactor.hide(text)}")

    def write(self, data: bytes) -> None:
        """What the server wrote."""
        *lines, rest = (self._rest + self._stream.feed(data)).split(b"\n")
        # A flood: only the newest can be kept.
        for line in lines[-_MOST_BYTES // 64 :]:
            self._add(clean_output(line[:_LONGEST_LINE]))
        self._rest = rest[:_LONGEST_LINE]

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > _MOST_BYTES:
            self._size -= len(self._lines.popleft()) + 1
