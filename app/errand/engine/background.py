"""The engine's background asyncio tasks: named and owned; an error ends neither other tasks nor the engine."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from functools import partial

from errand.engine.storage.sql.journal import begin_ownership

_logger = logging.getLogger(__name__)


class Background:
    """Holds its tasks until they end. Logs an exception under the task's name, then calls `failed`.

    Each task owns the changes it puts: see `own_changes`.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._closing = False

    def start(
        self, work: Coroutine[None, None, None], name: str, failed: Callable[[], None] | None = None
    ) -> "asyncio.Task[None]":
        """Run `work` once. If it raises, `failed` is called after logging."""
        own = copy_context()
        own.run(begin_ownership)
        task = asyncio.get_running_loop().create_task(work, name=name, context=own)
        self._running.add(task)
        task.add_done_callback(partial(self._on_done, failed))
        return task

    def keep(self, work: Callable[[], Coroutine[None, None, None]], name: str, again_s: float) -> None:
        """Run `work` until `close`; if it raises, restart it after `again_s` seconds."""
        self.start(work(), name, lambda: self._call_later(again_s, lambda: self.keep(work, name, again_s)))

    async def close(self) -> None:
        """Cancel all running tasks and wait for them."""
        self._closing = True
        for timer in self._timers:
            timer.cancel()
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running)

    def _on_done(self, failed: Callable[[], None] | None, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        _logger.error("%s failed", task.get_name(), exc_info=error)
        if failed is not None and not self._closing:
            failed()

    def _call_later(self, seconds: float, then: Callable[[], None]) -> None:
        def due() -> None:
            self._timers.discard(timer)
            then()

        timer = asyncio.get_running_loop().call_later(seconds, due)
        self._timers.add(timer)
