"""Asyncio tasks of the window: each has an owner, and what it raises goes where the owner says."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class Tasks:
    """Keeps tasks until they end. `failed` gets what one raised; the window shows it."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[None, None, None], failed: Callable[[Exception], None] | None = None) -> None:
        """Run `work` to its end; called from slots, which do not wait. `failed` gets what this one raised."""
        from asyncio import get_event_loop  # 30 ms; the first paint does not wait for it

        task = get_event_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(lambda done: self._done(done, failed or self._failed))

    async def close(self) -> None:
        """Cancel what runs and wait for it."""
        from asyncio import gather

        for task in self._running:
            task.cancel()
        await gather(*self._running, return_exceptions=True)

    def _done(self, task: "asyncio.Task[None]", failed: Callable[[Exception], None]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Exception):
            failed(error)
