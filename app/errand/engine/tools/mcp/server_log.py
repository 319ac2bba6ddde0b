"""The log of one server: what it wrote to its standard error, and what happened to it. Bounded and without keys."""

from collections import deque
from datetime import UTC, datetime

from errand.engine.tools.drawn_output import DrawnOutput
from errand.engine.tools.plain_text import clean_output
from errand.text.redaction import RedactedBytes, Redactor

_MAX_LOG_BYTES = 128 * 1024
_MAX_LINE_LENGTH = 4_096


class ServerLog:
    """The newest lines. Lines of the app begin with a time in brackets."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._stream = RedactedBytes(redactor)
        self._lines: deque[str] = deque()
        self._size = 0
        # The last lines, which the server may still draw over.
        self._screen = DrawnOutput()

    def text(self) -> str:
        return self._redactor("\n".join((*self._lines, *_cleaned(self._screen.pending))))

    def note(self, text: str) -> None:
        """A line of the app."""
        self._take(self._screen.finish())
        self._add(f"[{datetime.now(UTC):%Y-%m-%d %H:%M:%S}] {self._redactor.hide(text)}")

    def write(self, data: bytes) -> None:
        """Return what the server wrote."""
        self._take(self._screen.feed(self._stream.feed(data)))

    def _take(self, drawn: bytes) -> None:
        for line in _cleaned(drawn):
            self._add(line)

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > _MAX_LOG_BYTES:
            self._size -= len(self._lines.popleft()) + 1


def _cleaned(drawn: bytes) -> list[str]:
    """Return the lines as text. Of a flood only the newest can be kept."""
    lines = drawn.removesuffix(b"\n").split(b"\n") if drawn else []
    return [clean_output(line[:_MAX_LINE_LENGTH]) for line in lines[-_MAX_LOG_BYTES // 64 :]]
