"""The pace at which streamed text reaches the rows: at once, then not before two frames are over."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

# Two frames of a 60 Hz screen.
_FLUSH_S = 0.033


class Pace:
    """Collects the names of nodes and gives them to `flush`, each once, in the order in which they came."""

    def __init__(self, flush: Callable[[Iterable[str]], None]) -> None:
        self._flush = flush
        self._touched: dict[str, None] = {}
        self._flushed_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, node_ids: Iterable[str]) -> None:
        self._touched |= dict.fromkeys(node_ids)
        if self._timer is not None or not self._touched:
            return
        wait = self._flushed_at + _FLUSH_S - time.monotonic()
        if wait <= 0:
            self._on_due()
        else:
            from asyncio import get_running_loop  # the first paint does not wait for asyncio

            self._timer = get_running_loop().call_later(wait, self._on_due)

    def drop(self, node_id: str) -> None:
        """Its rows were just made anew."""
        self._touched.pop(node_id, None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_due(self) -> None:
        self._flushed_at = time.monotonic()
        self._timer = None
        touched, self._touched = self._touched, {}
        self._flush(touched)
