"""How late the event loop runs: a heartbeat that beats only while tasks are under way."""

import asyncio
from collections import deque

_BEAT_S = 0.01
_KEPT = 20_000


class StallMeter:
    """Lateness of the beats of the last minutes. `start` and `stop` count: it beats while anybody wants it."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=_KEPT)
        self._wanted = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._wanted += 1
        if self._timer is None:
            self._arm()

    def stop(self) -> None:
        self._wanted -= 1
        if self._wanted == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def p99_ms(self) -> float:
        ordered = sorted(self._late)
        return ordered[int(len(ordered) * 0.99)] * 1000 if ordered else 0.0

    def max_ms(self) -> float:
        return max(self._late, default=0.0) * 1000

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + _BEAT_S
        self._timer = loop.call_at(due, self._beat, due)

    def _beat(self, due: float) -> None:
        self._late.append(max(0.0, asyncio.get_running_loop().time() - due))
        self._arm()
