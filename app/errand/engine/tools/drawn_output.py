"""What a terminal would show of a program's output: lines that were drawn over or erased have their last state.

Bounded: only the last lines can still change. All else of escape sequences is taken out of lines that have them.
"""

import re

# How far up a program may go back, and the bytes that may still change.
_MAX_ROWS, _MAX_PENDING_BYTES = 100, 64 * 1024
_MAX_SEQUENCE_BYTES = 4_096
_SPECIAL = re.compile(rb"[\r\x08\x1b]")
# Colours and line ends of other systems draw nothing over.
_COLOUR = re.compile(rb"\x1b\[[\d;:]*m")
_TOKEN = re.compile(
    rb"\x1b\[([0-?]*)[ -/]*([@-~])"  # a control sequence
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # an operating system command
    rb"|\x1b[ -/]*[0-Z\\^-~]"  # another escape
    rb"|([\r\n\x08])"
    rb"|([^\r\n\x08\x1b]+)"
    rb"|\x1b"
)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[ -/]*)\Z")


class DrawnOutput:
    """Takes bytes with `feed`, which returns those that can change no more; `pending` is the rest so far."""

    def __init__(self) -> None:
        self._rows = [bytearray()]
        self._row = 0
        # The cursor is at the beginning of its row: what comes next draws over it.
        self._is_fresh = False
        self._rest = b""

    @property
    def pending(self) -> bytes:
        """The last lines as they stand now."""
        return b"\n".join(map(bytes, self._rows))

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data
        self._rest = b""
        if unfinished := _UNFINISHED.search(data, max(0, len(data) - _MAX_SEQUENCE_BYTES)):
            data, self._rest = data[: unfinished.start()], unfinished[0]
        plain = _COLOUR.sub(b"", data) if b"\x1b" in data else data
        plain = plain.replace(b"\r\n", b"\n")
        is_at_end = self._row == len(self._rows) - 1 and not self._is_fresh
        if is_at_end and not _SPECIAL.search(plain):
            return self._append(plain)
        for token in _TOKEN.finditer(data):
            self._draw(token)
        return self._settled()

    def _append(self, data: bytes) -> bytes:
        """Take text that draws nothing over; of many lines only the last ones are looked at one by one."""
        settled = b""
        if data.count(b"\n") > _MAX_ROWS:
            data, cut = self.pending + data, len(self.pending) + len(data)
            for _ in range(_MAX_ROWS):
                cut = data.rfind(b"\n", 0, cut)
            settled, data, self._rows = data[: cut + 1], data[cut + 1 :], [bytearray()]
        first, *others = data.split(b"\n")
        self._rows[-1] += first
        self._rows += map(bytearray, others)
        self._row = len(self._rows) - 1
        return settled + self._settled()

    def finish(self) -> bytes:
        """Return the rest, when nothing follows."""
        rest, self._rows, self._row, self._rest = self.pending, [bytearray()], 0, b""
        return rest

    def _draw(self, token: re.Match[bytes]) -> None:
        parameters, command, control, text = token.groups()
        if text is not None:
            if self._is_fresh:
                self._rows[self._row].clear()
                self._is_fresh = False
            self._rows[self._row] += text
        elif control == b"\n":
            self._move_to(self._row + 1)
        elif control == b"\r":
            self._is_fresh = True
        elif control == b"\x08":
            del self._rows[self._row][_last_character(self._rows[self._row]) :]
        elif command is not None:
            self._command(command, parameters)

    def _command(self, command: bytes, parameters: bytes) -> None:
        number = int(parameters) if parameters.isdigit() and len(parameters) < 6 else 0
        match command:
            case b"A" | b"F":
                self._move_to(self._row - max(1, number))
            case b"B" | b"E":
                self._move_to(min(self._row + max(1, number), len(self._rows) - 1))
            case b"G" if number <= 1:
                self._is_fresh = True
            case b"K" if number == 2 or self._is_fresh:
                self._rows[self._row].clear()
            case b"J" if number == 0:
                del self._rows[self._row + 1 :]
                if self._is_fresh:
                    self._rows[self._row].clear()
            case _:
                return
        if command in b"EF":
            self._is_fresh = True

    def _move_to(self, row: int) -> None:
        self._is_fresh = self._is_fresh and row < self._row
        self._row = max(0, row)
        while self._row >= len(self._rows):
            self._rows.append(bytearray())

    def _settled(self) -> bytes:
        """Take the lines away that no program goes back to."""
        count = max(0, len(self._rows) - _MAX_ROWS)
        size = sum(map(len, self._rows[count:]))
        while size > _MAX_PENDING_BYTES and count < len(self._rows) - 1:
            size -= len(self._rows[count])
            count += 1
        lines = b"".join(bytes(row) + b"\n" for row in self._rows[:count])
        del self._rows[:count]
        self._row = max(0, self._row - count)
        if size > _MAX_PENDING_BYTES:  # one long line
            lines += bytes(self._rows[0])
            self._rows[0].clear()
        return lines


def drawn(data: bytes) -> bytes:
    """Return what a terminal would show of the data, without an unfinished sequence at its end."""
    if not _SPECIAL.search(data):
        return data
    output = DrawnOutput()
    return output.feed(data) + output.finish()


def _last_character(line: bytearray) -> int:
    """Return the index at which the last character begins, which may have several bytes."""
    at = len(line) - 1
    while at > 0 and line[at] & 0xC0 == 0x80:
        at -= 1
    return max(0, at)
