"""How late the event loop runs, as a timer of 10 ms would find out; told from its turns, so that none has to run."""

from collections import deque

_BEAT_NS = 10_000_000
_KEPT = 20_000
# Of a time without any turn so many beats count, all of them in time.
_MOST_IN_TIME = 100


class StallMeter:
    """Lateness of the beats of the last minutes in which there was anything to do."""

    def __init__(self) -> None:
        self._late = deque[float](maxlen=_KEPT)
        self._due = 0

    def turn(self, began: int, ended: int) -> None:
        """A turn of the loop, in monotonic nanoseconds: a beat that falls due in it comes when it has ended."""
        if ended < self._due:
            return
        missed = (began - self._due) // _BEAT_NS + 1 if began > self._due else 0
        if self._due and missed:
            self._late.extend([0.0] * min(missed, _MOST_IN_TIME))
        due = self._due + missed * _BEAT_NS
        if due <= ended:
            self._late.append((ended - due) / 1e9)
            due = ended + _BEAT_NS
        self._due = due

    def p99_ms(self) -> float:
        ordered = sorted(self._late)
        return ordered[int(len(ordered) * 0.99)] * 1000 if ordered else 0.0

    def max_ms(self) -> float:
        return max(self._late, default=0.0) * 1000
