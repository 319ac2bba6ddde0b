"""Time limits that a stop signal ends early."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from errand.engine.core.cancel import CancelSignal
from errand.engine.models.reply.content import REPLY_LIMITS, ReplyTooLong


class Aborted(Exception):
    """The stop signal was set."""


class Stalled(Exception):
    """No data arrived in time."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"nothing came for {limit_s:g} s")
        self.limit_s = limit_s


class Deadline:
    """A context manager around `async with deadline.within(seconds)`, which the stop signal ends too.

    All blocks together may take `whole_s`: otherwise a server that sends keep-alives could keep a reply open forever.
    Uses `asyncio.timeout`, so it starts no asyncio task.
    """

    def __init__(self, stop: CancelSignal, whole_s: float = REPLY_LIMITS.seconds) -> None:
        self._stop = stop
        self._whole_s = whole_s
        self._end = time.monotonic() + whole_s
        self._clock: asyncio.Timeout | None = None
        self._unsubscribe = stop.subscribe(self._wake)

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

    @asynccontextmanager
    async def within(self, limit_s: float) -> AsyncGenerator[None]:
        """Cancels the block on the stop signal, or after `limit_s`.

        Raises `Aborted`, `Stalled` or `ReplyTooLong`; also on entry, since blocks may end without waiting, repeatedly.
        """
        self.check()
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            raise self._too_long()
        try:
            async with asyncio.timeout(min(limit_s, left_s)) as self._clock:
                yield
        except TimeoutError as error:
            if self._stop.is_set:
                raise Aborted from error
            if left_s < limit_s:
                raise self._too_long() from error
            raise Stalled(limit_s) from error
        finally:
            self._clock = None

    def _too_long(self) -> ReplyTooLong:
        return ReplyTooLong(f"takes longer than {self._whole_s / 60:g} minutes")

    def _wake(self) -> None:
        if self._clock is not None and not self._clock.expired():  # an expired timeout cannot be rescheduled
            self._clock.reschedule(asyncio.get_running_loop().time())
