"""Server-sent events from bytes, cut anywhere: gives the data of each event. What is in them is left to others."""

_BOM = b"\xef\xbb\xbf"
STRAY_LIMIT = 4 * 1024 * 1024
LINE_LIMIT = 16 * 1024 * 1024


class LineTooLong(ValueError):
    """A line went on for more than `LINE_LIMIT` bytes."""


class EventStream:
    """Feed it bytes, get whole data payloads.

    It works on bytes and gives out whole lines only, so a character cut in two is never seen. `stray` keeps lines
    that are no event fields: the whole body, when a server answers with plain JSON or a web page.
    """

    def __init__(self) -> None:
        self.stray = b""
        self._rest = b""
        self._data: list[bytes] = []
        self._began = False

    def feed(self, chunk: bytes) -> list[bytes]:
        data = self._rest + chunk
        if not self._began:
            if _BOM.startswith(data):
                self._rest = data
                return []
            data, self._began = data.removeprefix(_BOM), True
        held = b""
        if b"\r" in data:
            if data.endswith(b"\r"):  # its \n may be in the next chunk
                data, held = data[:-1], b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        self._rest = lines.pop() + held
        if len(self._rest) > LINE_LIMIT:
            raise LineTooLong
        return self._take(lines)

    def finish(self) -> list[bytes]:
        """The stream ended: an event whose last blank line is missing counts too."""
        lines, self._rest = [self._rest.removesuffix(b"\r"), b""], b""
        return self._take(lines)

    def _take(self, lines: list[bytes]) -> list[bytes]:
        payloads: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if self._data:
                    payloads.append(b"\n".join(self._data))
                    self._data = []
            elif not line.startswith((b":", b"event", b"id", b"retry", b"data")) and len(self.stray) < STRAY_LIMIT:
                self.stray += line + b"\n"
        return payloads
