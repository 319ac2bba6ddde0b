"""Models that kept a request waiting and then failed: for a while others are asked before them."""

import time

_SLOW_S = 1.0  # what fails sooner costs nothing to ask again, and may have been set right meanwhile
_REST_S = 60.0


class Outages:
    """Of one place; the times are for tests."""

    def __init__(self, slow_s: float = _SLOW_S, rest_s: float = _REST_S) -> None:
        self._slow_s = slow_s
        self._rest_s = rest_s
        self._until: dict[str, float] = {}

    def failed(self, model_id: str, took_s: float) -> None:
        if took_s >= self._slow_s:
            self._until[model_id] = time.monotonic() + self._rest_s

    def has(self, model_id: str) -> bool:
        return time.monotonic() < self._until.get(model_id, 0.0)
