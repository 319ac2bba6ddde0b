"""Lets long computations yield: to the event loop, and to other threads."""

import asyncio
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

# While a thread computes, the event loop waits this long for the interpreter at each of its steps. Python's default is
# 5 ms; always this short, it would make a tool step 0.3 ms slower.
_SHORT_S = 0.0002

# A coroutine that computes pauses this long after each slice. `sleep(0)` releases the interpreter too briefly: threads
# that save or read for others get it only after the switch interval.
_SLICE_S = 0.005
_PAUSE_S = 0.0005
# Below this share of CPU time within a slice, the event loop's thread waited enough by itself.
_BUSY = 0.5

_depth = 0
_default_interval_s = sys.getswitchinterval()


@contextmanager
def short_switches() -> Generator[None]:
    """Enter it in the event loop around work in a thread that takes more than a few milliseconds."""
    global _depth, _default_interval_s
    if _depth == 0:
        _default_interval_s = sys.getswitchinterval()
        sys.setswitchinterval(_SHORT_S)
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            sys.setswitchinterval(_default_interval_s)


class Slice:
    """The time that a coroutine may compute without a pause, such as while it reads a flood of data.

    At each step: `if slice.is_over: await slice.renew()`.
    """

    __slots__ = ("_cpu_s", "_ends_at")

    def __init__(self) -> None:
        self._begin()

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._ends_at

    async def renew(self) -> None:
        """Pause, unless the event loop has been waiting anyway."""
        busy_s = time.thread_time() - self._cpu_s
        passed_s = time.monotonic() - self._ends_at + _SLICE_S
        if busy_s > _BUSY * passed_s:
            await asyncio.sleep(_PAUSE_S)
        self._begin()

    def _begin(self) -> None:
        self._ends_at = time.monotonic() + _SLICE_S
        self._cpu_s = time.thread_time()
