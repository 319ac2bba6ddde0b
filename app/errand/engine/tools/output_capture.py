"""Keeps the output of a process: the beginning and the end for the model, all of it in a file if it is long."""

import os
from pathlib import Path

from errand.engine.tools.plain_text import clean_output, is_clean
from errand.redaction import RedactedBytes, Redactor

# The model's share of one stream. The tail is longer than the head because errors come last.
_HEAD = 10_000
_TAIL = 20_000
LIMIT = _HEAD + _TAIL
FILE_LIMIT = 200_000_000
_CONTINUATION = bytes(range(0x80, 0xC0))  # of a truncated UTF-8 character


class OutputCapture:
    """Collects bytes with `add` until `close`, without the app's own keys; `text` works at any time."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor
        self._stream = RedactedBytes(redactor)
        self._head = b""
        self._tail = bytearray()
        self._descriptor: int | None = None
        self._written = 0
        self._problem = ""
        self._final: str | None = None
        self.total = 0

    @property
    def file(self) -> Path | None:
        """The file with the full output, if the output was too long."""
        return self._path if self._written else None

    def add(self, data: bytes) -> None:
        self._take(self._stream.feed(data))

    def _take(self, data: bytes) -> None:
        self.total += len(data)
        if self.total <= LIMIT:
            self._tail += data
        elif self._head:
            self._write(data)
            self._tail = bytearray(data[-_TAIL:]) if len(data) >= _TAIL else (self._tail + data)[-_TAIL:]
        else:
            data = bytes(self._tail) + data
            self._write(data)
            self._head, self._tail = data[:_HEAD], bytearray(data[_HEAD:][-_TAIL:])

    def close(self) -> None:
        """Finish the file; short output is stored there too if it is not text."""
        self._take(self._stream.finish())
        if not self._head and not is_clean(bytes(self._tail)):
            self._write(bytes(self._tail))
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._final = self.text()

    def text(self) -> str:
        """The captured output as clean text; says how much is omitted and where the rest is."""
        if self._final is not None:
            return self._final
        if not self._head:
            text = self._clean(bytes(self._tail))
            return f"{text}\n[not plain text{self._place('its bytes are in')}]" if self._written else text
        head = self._head[: self._head.rfind(b"\n") + 1] or self._head
        tail = bytes(self._tail[self._tail.find(b"\n") + 1 :]) or bytes(self._tail)
        left_out = self.total - len(head) - len(tail)
        remark = f"[{left_out:,} bytes left out{self._place('the full output is in')}]"
        return f"{self._clean(head)}\n{remark}\n{self._clean(tail)}"

    def tail(self, size: int) -> str:
        """The end of the output so far, starting at a line if possible; more may follow."""
        data = bytes(self._tail[-size:])
        if len(data) < self.total:
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
        wanted, number = self._path, 1
        while True:
            try:
                return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                number += 1
                self._path = wanted.with_stem(f"{wanted.stem}-{number}")

    def _place(self, what: str) -> str:
        place = f"; {what} {self._path}" if self._written else ""
        return place + (f" ({self._problem})" if self._problem else "")
