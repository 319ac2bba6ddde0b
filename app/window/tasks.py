"""Asyncio tasks of the window: each has an owner, and what it raises goes where the owner says."""

import asyncio
from collections.abc import Callable, Coroutine


class Tasks:
    """Keeps tasks until they end. `failed` gets what one raised; the window shows it."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[None, None, None], failed: Callable[[Exception], None] | None = None) -> None:
        """Run `work` to its end; called from slots, which do not wait. `failed` gets what this one raised."""
        task = asyncio.get_event_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(lambda done: self._done(done, failed or self._failed))

    async def close(self) -> None:
        """Cancel what runs and wait for it."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _done(self, task: "asyncio.Task[None]", failed: Callable[[Exception], None]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Exception):
            failed(error)
