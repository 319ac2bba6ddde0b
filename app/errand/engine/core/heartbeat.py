"""The event loop's heartbeat in shared memory, and the latency of the loop."""

import asyncio
import mmap
import os
import selectors
import sys
import time
from collections import deque
from collections.abc import Callable

# Two 8-byte integers, also defined in `watchdog_child.py`: the start of the current loop iteration (monotonic
# nanoseconds, 0 while the loop waits), and 1 while the watchdog checks.
_SIZE = 16
_STARTED_AT, _IS_WATCHED = 0, 1

OnTurn = Callable[[int, int], None]

_BEAT_NS = 10_000_000
_MAX_BEATS = 20_000
# Maximum number of on-time beats that count for a time without iterations.
_MAX_ON_TIME_BEATS = 100


def _ignore(began: int, ended: int) -> None:
    pass


class Heartbeat:
    """An event loop's heartbeat; `loop` creates the loop. `on_turn` gets start and end of each iteration (in ns)."""

    def __init__(self) -> None:
        self.on_turn: OnTurn = _ignore
        self._wake: Callable[[], None] | None = None
        self.descriptor = os.memfd_create("errand-heartbeat")
        os.ftruncate(self.descriptor, _SIZE)
        self._page = memoryview(mmap.mmap(self.descriptor, _SIZE)).cast("q")
        self._page[_IS_WATCHED] = 1

    def loop(self) -> asyncio.AbstractEventLoop:
        self.begin(time.monotonic_ns())
        return asyncio.SelectorEventLoop(_BeatingSelector(self))

    def watch(self, wake: Callable[[], None]) -> None:
        """Call `wake` from now on whenever the loop starts an iteration while the watchdog does not check."""
        self._wake = wake
        self._page[_IS_WATCHED] = 0

    def begin(self, now: int) -> None:
        """An iteration begins at `now`, in monotonic nanoseconds."""
        page = self._page
        page[_STARTED_AT] = now
        if not page[_IS_WATCHED] and self._wake is not None:
            page[_IS_WATCHED] = 1
            self._wake()

    def end(self, now: int) -> None:
        """The iteration ends at `now`, and the loop waits."""
        self.on_turn(self._page[_STARTED_AT], now)
        self._page[_STARTED_AT] = 0

    def go_on(self, now: int) -> None:
        """One iteration ends and the next begins, without a wait."""
        self.on_turn(self._page[_STARTED_AT], now)
        self.begin(now)


class _BeatingSelector(selectors.DefaultSelector):
    """Reports the iterations of the loop, which calls `select` once in each."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        super().__init__()
        self._heartbeat = heartbeat
        self._select = super().select

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            self._heartbeat.go_on(time.monotonic_ns())
            return self._select(timeout)
        self._heartbeat.end(time.monotonic_ns())
        try:
            return self._select(timeout)
        finally:
            self._heartbeat.begin(time.monotonic_ns())


def new_heartbeat() -> Heartbeat | None:
    """Return None if the system has no memory that can be shared with another program."""
    if sys.platform != "linux":
        return None
    try:
        return Heartbeat()
    except OSError:
        return None


class LoopLatency:
    """Lateness of the beats in the last minutes of activity."""

    def __init__(self) -> None:
        self._late = deque[float](maxlen=_MAX_BEATS)
        self._due = 0

    def turn(self, began: int, ended: int) -> None:
        """Record an iteration, in monotonic nanoseconds: a beat due within it is late until the iteration ends."""
        if ended < self._due:
            return
        missed = (began - self._due) // _BEAT_NS + 1 if began > self._due else 0
        if self._due and missed:
            self._late.extend([0.0] * min(missed, _MAX_ON_TIME_BEATS))
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
