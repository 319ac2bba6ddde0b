"""Long work on the event loop in slices, so that everybody else is served in between."""

import asyncio
import time

_SLICE_S = 0.005


class TimeSlice:
    """One for each piece of long work: call `rest` often."""

    def __init__(self, slice_s: float = _SLICE_S) -> None:
        self._slice_s = slice_s
        self._end = time.monotonic() + slice_s

    async def rest(self) -> None:
        """Let others run once the slice is used up; else nothing."""
        if time.monotonic() >= self._end:
            await asyncio.sleep(0)
            self._end = time.monotonic() + self._slice_s
