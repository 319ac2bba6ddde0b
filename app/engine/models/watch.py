"""Waits for one thing at a time, no longer than until the stop signal is set or the time is up."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from app.engine.cancel import CancelSignal

T = TypeVar("T")


class Aborted(Exception):
    """The stop signal was set."""


class Stalled(Exception):
    """Nothing came in time."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"nothing came for {limit_s:g} s")
        self.limit_s = limit_s


class Watch:
    """A context: `of` awaits a coroutine and cancels it as soon as the stop signal is set or the limit is over.

    Works through `asyncio.timeout`, so it starts no asyncio task and leaves nothing behind.
    """

    def __init__(self, stop: CancelSignal) -> None:
        self._stop = stop
        self._clock: asyncio.Timeout | None = None
        self._unsubscribe = stop.subscribe(self._ring)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unsubscribe()

    def check(self) -> None:
        """Raise `Aborted` if the stop signal is set already."""
        if self._stop.is_set:
            raise Aborted

    async def of(self, work: Coroutine[Any, Any, T], limit_s: float) -> T:
        """The result of `work`; raises `Aborted` or `Stalled`."""
        if self._stop.is_set:
            work.close()
            raise Aborted
        try:
            async with asyncio.timeout(limit_s) as self._clock:
                return await work
        except TimeoutError as error:
            raise (Aborted() if self._stop.is_set else Stalled(limit_s)) from error
        finally:
            self._clock = None

    def _ring(self) -> None:
        if self._clock is not None:
            self._clock.reschedule(asyncio.get_running_loop().time())
