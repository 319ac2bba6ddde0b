"""A token bucket: how many requests a client may send."""

import time
from collections.abc import Callable

# What a person's fastest face needs is below 20 a second; a script may burst.
_PER_SECOND = 200.0
_BURST = 400.0


class RateLimit:
    def __init__(
        self, per_second: float = _PER_SECOND, burst: float = _BURST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._tokens = burst
        self._at = clock()

    def allows(self) -> bool:
        """Take one token; False when there is none."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
