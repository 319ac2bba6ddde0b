"""Finds that a reply repeats itself without end, as small models do: in linear time, with bounded memory."""

_MIN_TIMES = 10
_MAX_PIECE_LENGTH = 2_000
# Characters between two checks.
_STRIDE = 512
# So many characters at the end of the text are searched for before it: a piece may end there, too.
_END_LENGTH = 64
_MAX_CANDIDATES = 8


class RepetitionWatch:
    """Watches the end of a growing text for a piece of up to 2,000 characters that came again and again.

    A piece counts from the tenth time in a row, once all of them have `limit` characters: tables of numbers, drawings
    and data in code repeat themselves too, but seldom for so long without a change.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._window = max(limit, _MIN_TIMES * _MAX_PIECE_LENGTH)
        self._tail = ""
        self._new: list[str] = []
        self._new_length = 0

    def repeats(self, delta: str) -> bool:
        """Add a piece of the text; return whether the text now repeats itself."""
        self._new.append(delta)
        self._new_length += len(delta)
        if self._new_length < _STRIDE:
            return False
        self._tail = "".join((self._tail, *self._new))[-self._window :]
        self._new, self._new_length = [], 0
        return self._is_repeated()

    def _is_repeated(self) -> bool:
        tail, end = self._tail, len(self._tail)
        if end < self._limit:
            return False
        last, position = tail[-_END_LENGTH:], end - _END_LENGTH
        for _ in range(_MAX_CANDIDATES):
            position = tail.rfind(last, max(0, end - _END_LENGTH - _MAX_PIECE_LENGTH), position + _END_LENGTH - 1)
            if position < 0:
                return False
            period = end - _END_LENGTH - position
            size = max(self._limit, _MIN_TIMES * period)
            if size <= end and tail[end - size + period :] == tail[end - size : end - period]:
                return True
        return False
