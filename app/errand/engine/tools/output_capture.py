"""Keeps the output of a process: the beginning and the end for the model, all of it in a file if it is long."""

import os
from pathlib import Path

from errand.engine.tools.drawn_output import DrawnOutput
from errand.engine.tools.plain_text import clean_output, is_clean
from errand.text.redaction import RedactedBytes, Redactor

# The model's share of one stream. The tail is longer than the head because errors come last.
_HEAD = 10_000
_TAIL = 20_000
LIMIT = _HEAD + _TAIL
FILE_LIMIT = 200_000_000
_CONTINUATION = bytes(range(0x80, 0xC0))  # of a truncated UTF-8 character


class OutputCapture:
    """Collects bytes with `add` until `close`, without the app's own keys; `text` works at any time.

    What is measured and shown is what a terminal would show; the file has the bytes as they came. `total` counts these.
    """

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor
        self._stream = RedactedBytes(redactor)
        self._screen = DrawnOutput()
        # The bytes as they came, until there are so many that a file has them.
        self._raw: bytearray | None = bytearray()
        self._head = b""
        self._tail = bytearray()
        self._shown_size = 0
        self._descriptor: int | None = None
        self._written = 0
        self._problem = ""
        self._final: str | None = None
        self._is_text = True
        self.total = 0

    @property
    def file(self) -> Path | None:
        """The file with the full output, if the output was too long."""
        return self._path if self._written else None

    def add(self, data: bytes) -> None:
        self._take(self._stream.feed(data))

    def _take(self, data: bytes) -> None:
        self.total += len(data)
        if self._raw is None:
            self._write(data)
        else:
            self._raw += data
            if self.total > LIMIT:
                self._write(bytes(self._raw))
                self._raw = None
        self._show(self._screen.feed(data))

    def _show(self, data: bytes) -> None:
        self._shown_size += len(data)
        if self._shown_size <= LIMIT:
            self._tail += data
        elif self._head:
            self._tail = bytearray(data[-_TAIL:]) if len(data) >= _TAIL else (self._tail + data)[-_TAIL:]
        else:
            data = bytes(self._tail) + data
            self._head, self._tail = data[:_HEAD], bytearray(data[_HEAD:][-_TAIL:])

    def close(self) -> None:
        """Finish the file, which short output has too if it is not text, and long output only if not all is shown."""
        self._take(self._stream.finish())
        self._show(self._screen.finish())
        self._is_text = is_clean(bytes(self._tail if self._raw is None else self._raw))
        if self._raw is not None and not self._is_text:
            self._write(bytes(self._raw))
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._raw is None and not self._head and self._is_text:
            self._path.unlink(missing_ok=True)
            self._written, self._problem = 0, ""
        self._final = self.text()

    def text(self) -> str:
        """Return the captured output as clean text; says how much is omitted and where the rest is."""
        if self._final is not None:
            return self._final
        tail_data = bytes(self._tail) + self._screen.pending
        size = self._shown_size + len(self._screen.pending)
        if size <= LIMIT and not self._head:
            text = self._clean(tail_data)
            return text if self._is_text else f"{text}\n[not plain text{self._place('its bytes are in')}]"
        head, tail = (self._head, tail_data) if self._head else (tail_data[:_HEAD], tail_data[_HEAD:])
        tail = tail[-_TAIL:]
        head = head[: head.rfind(b"\n") + 1] or head
        tail = tail[tail.find(b"\n") + 1 :] or tail
        left_out = size - len(head) - len(tail)
        remark = f"[{left_out:,} bytes left out{self._place('the full output is in')}]"
        return f"{self._clean(head)}\n{remark}\n{self._clean(tail)}"

    def tail(self, size: int) -> str:
        """Return the end of the output so far, starting at a line if possible; more may follow."""
        tail = bytes(self._tail[-size:]) + self._screen.pending
        data = tail[-size:]
        if len(data) < self._shown_size + len(self._screen.pending):
            data = data[data.find(b"\n") + 1 :] or data
            data = data.lstrip(_CONTINUATION)
        return self._redactor.hide(clean_output(data, has_more=True))

    def _clean(self, data: bytes) -> str:
        """Also without keys that are written in another way, such as in JSON."""
        return self._redactor.hide(clean_output(data))

    def _write(self, data: bytes) -> None:
        room = FILE_LIMIT - self._written
        if self._problem or not data:
            return
        if len(data) > room:
            self._problem = f"only its first {FILE_LIMIT // 1_000_000} MB were kept"
        try:
            if self._descriptor is None:
                self._descriptor = self._new_file()
            self._written += os.write(self._descriptor, data[:room])
        except OSError as error:
            self._problem = f"it could not be kept whole: {error.strerror}"

    def _new_file(self) -> int:
        """Always a new file: models reuse call ids in later turns, and an earlier result names its file."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        candidate, number = self._path, 1
        while True:
            try:
                return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                number += 1
                self._path = candidate.with_stem(f"{candidate.stem}-{number}")

    def _place(self, what: str) -> str:
        file_note = f"; {what} {self._path}" if self._written else ""
        return file_note + (f" ({self._problem})" if self._problem else "")
