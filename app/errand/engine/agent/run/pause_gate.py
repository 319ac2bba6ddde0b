"""Holds each step while the task is paused or the call interval has not passed."""

import asyncio
import time
from collections.abc import Coroutine

from errand.engine.agent.loop.features import Feature, RepeatRequest
from errand.engine.agent.loop.hooks import PendingCall
from errand.engine.agent.run.rate_limit_wait import RateLimitWait
from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.cancel import CancelSignal
from errand.engine.models.base import ModelRequest, ReplyEnd


class PauseGate(Feature):
    """Open until `close`; while it is closed, model calls and tool calls wait.

    `pace_s` is the minimum time between two model calls, `limit` the wait for the provider's rate limit.
    """

    def __init__(self, state: TaskState, pace_s: float, limit: RateLimitWait) -> None:
        self.limit = limit
        self._state = state
        self._pace_s = pace_s
        self._last_call = 0.0
        self._open = asyncio.Event()
        self._open.set()
        self._waiting = 0

    @property
    def has_waiting(self) -> bool:
        """A step waits at the closed gate, so no step is running."""
        return self._waiting > 0

    @property
    def is_closed(self) -> bool:
        return not self._open.is_set()

    def close(self, activity: str) -> None:
        """Let the current step finish; the next one waits."""
        self._open.clear()
        self._state.set_activity(activity)

    def open(self) -> None:
        self._open.set()
        if self.limit.is_active:
            self.limit.show_again()
        elif self._state.task.activity.status != "paused":
            self._state.set_activity("")

    async def before_request(self, request: ModelRequest, cancel: CancelSignal) -> ModelRequest:
        """Wait until the next model call is due and the gate is open, or the task is cancelled."""
        await self.limit.wait(cancel)
        wait = self._last_call + self._pace_s - time.monotonic()
        if wait > 0 and self._last_call:
            self._state.set_activity(f"next model call in {wait:.0f} s")
            await wait_or_cancel(asyncio.sleep(wait), cancel)
        await self._wait_open(cancel)
        self._last_call = time.monotonic()
        return request

    async def after_reply(
        self, request: ModelRequest, sent: ModelRequest, end: ReplyEnd, cancel: CancelSignal
    ) -> ReplyEnd | RepeatRequest:
        """After a rate limit, make the same call again; `before_request` waits until the limit has passed."""
        settled = self.limit.check_reply(end)
        return settled if isinstance(settled, ReplyEnd) else RepeatRequest(settled)

    async def before_tool_call(self, pending: PendingCall, cancel: CancelSignal) -> PendingCall:
        await self._wait_open(cancel)
        return pending

    async def _wait_open(self, cancel: CancelSignal) -> None:
        """Return once the gate is open or the task is cancelled."""
        if self.is_closed and not cancel.is_set:
            self._state.move("paused", "paused")
            self._waiting += 1
            try:
                await wait_or_cancel(self._open.wait(), cancel)
            finally:
                self._waiting -= 1
            self._state.derive_status()


async def wait_or_cancel(work: Coroutine[object, object, object], cancel: CancelSignal) -> None:
    """Wait for `work` or the signal, whichever comes first; the other is cancelled."""
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(cancel.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
