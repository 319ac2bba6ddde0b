"""Time limits that a stop signal ends early."""

import asyncio
import time
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

    All blocks together may take `limit_s`: otherwise a server that sends keep-alives could keep a reply open forever.
    It starts no asyncio task.
    """

    def __init__(self, stop: CancelSignal, limit_s: float = REPLY_LIMITS.seconds) -> None:
        self._stop = stop
        self._limit_s = limit_s
        self._end = time.monotonic() + limit_s
        self._block: _Block | None = None
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

    def within(self, limit_s: float) -> "_Block":
        """Cancel the block on the stop signal, or after `limit_s`.

        Raises `Aborted`, `Stalled` or `ReplyTooLong`; also on entry, since blocks may end without waiting, repeatedly.
        """
        self.check()
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            raise self._too_long()
        self._block = _Block(min(limit_s, left_s), self._stop, self._too_long() if left_s < limit_s else None)
        return self._block

    def _too_long(self) -> ReplyTooLong:
        return ReplyTooLong(f"takes longer than {self._limit_s / 60:g} minutes")

    def _wake(self) -> None:
        if self._block is not None:
            self._block.end_now()


class _Block:
    """A limit like `asyncio.timeout`, at a third of its CPU time: a step of a task has several of them.

    Raises `at_end` after `limit_s`, or `Stalled`.
    """

    def __init__(self, limit_s: float, stop: CancelSignal, at_end: ReplyTooLong | None) -> None:
        self._limit_s = limit_s
        self._stop = stop
        self._at_end = at_end
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._is_over = False

    def end_now(self) -> None:
        """Cancel the block, if it has begun and not ended."""
        if self._timer is not None and not self._is_over:
            self._timer.cancel()
            self._timer = self._loop.call_soon(self._cancel)

    def _cancel(self) -> None:
        assert self._task is not None
        self._is_over = True
        self._task.cancel()

    async def __aenter__(self) -> None:
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()
        self._timer = self._loop.call_later(self._limit_s, self._cancel)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        assert self._timer is not None
        self._timer.cancel()
        self._timer = None
        # If somebody else cancels the task at the same time, the cancellation goes on.
        is_ours = self._is_over and self._task.uncancel() <= self._cancelling
        if (is_ours and kind is asyncio.CancelledError) or isinstance(error, TimeoutError):
            if self._stop.is_set:
                raise Aborted from error
            raise self._at_end or Stalled(self._limit_s) from error
