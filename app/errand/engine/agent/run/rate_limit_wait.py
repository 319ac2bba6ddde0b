"""Waits for a provider's rate limit. The wait is part of the stored task, so it survives a restart (decision 17)."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from errand.engine.agent.run.task_state import TaskState, with_status
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import AssistantMessage
from errand.engine.models.base import ReplyEnd, Retry
from errand.protocol.tasks.task import Task, replace_fields

_TOLERANCE = timedelta(seconds=1)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class RateLimitPolicy:
    """Bounds of consecutive waits: `most` attempts, at most `longest` in total.

    If the provider names no time, the waits double from `first_s` to `longest_guess_s`. The system clock may be changed
    meanwhile, so it is checked every `look_again_s`.
    """

    most: int = 100
    longest: timedelta = timedelta(days=1)
    first_s: float = 60.0
    longest_guess_s: float = 900.0
    look_again_s: float = 60.0


_WAITS = RateLimitPolicy()


class RateLimitWait:
    """The rate limit wait of one task. Await `wait` before each model call; other methods may be called meanwhile."""

    def __init__(self, state: TaskState, waits: RateLimitPolicy = _WAITS, now: Callable[[], datetime] = _now) -> None:
        self._state = state
        self._waits = waits
        self._now = now
        self._count = 0
        self._reason = "limit of the provider"
        self._ends = asyncio.Event()

    @property
    def is_active(self) -> bool:
        return self._state.task.activity.retry_at is not None

    def check_reply(self, end: ReplyEnd) -> ReplyEnd | Retry:
        """Return the end of a reply unchanged, or a `Retry` if the call was rate limited."""
        if end.retry_later is None:
            self._reset()
            return end
        now, task = self._now(), self._state.task
        since = min(task.activity.limited_at or now, now)
        at = end.retry_later.at or now + timedelta(seconds=self._guess_s())
        if why := self._limit_reached(since, at):
            return ReplyEnd(replace(end.message, error=f"{end.message.error} {why}"))
        self._count += 1
        self._reason = end.retry_later.reason
        given_back = replace_fields(task, step_count=task.progress.step_count - 1, limited_at=since)
        self._state.set(self._waiting_task(given_back, at))
        self._ends.clear()
        void = AssistantMessage(model=end.message.model)
        return Retry(self._count, self._waits.most, (at - now) / timedelta(seconds=1), self._reason, void)

    def _limit_reached(self, since: datetime, at: datetime) -> str:
        if self._count >= self._waits.most:
            return f"It has waited {self._count} times for this limit to pass."
        if at > since + self._waits.longest:
            return f"It holds until {_local_time(at)}, longer than a task waits: start it again then."
        return ""

    async def wait(self, cancel: CancelSignal) -> None:
        """Return once the stored time is reached, after `end`, or when the task is cancelled."""
        at = self._state.task.activity.retry_at
        if at is None:
            return
        left_s = self._first_left_s(at)
        ends_at = time.monotonic() + left_s
        unsubscribe = cancel.subscribe(self._ends.set)
        try:
            while left_s > 0 and not self._ends.is_set():
                self._show(self._now() + timedelta(seconds=left_s))
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left_s, self._waits.look_again_s)):
                        await self._ends.wait()
                # A clock set forward ends the wait; a clock set back does not extend it.
                left_s = min(ends_at - time.monotonic(), self._left_s(self._state.task.activity.retry_at or at))
        finally:
            unsubscribe()
        if not cancel.is_set:
            self._state.task = replace_fields(self._state.task, retry_at=None)
            self._state.derive_status()

    def end(self) -> None:
        """Stop waiting and retry now."""
        self._ends.set()

    def show_again(self) -> None:
        """Show the wait again, after another activity was shown."""
        task = self._state.task
        if task.activity.retry_at is not None:
            self._state.set(self._waiting_task(task, task.activity.retry_at))

    def _reset(self) -> None:
        """A reply came. The next change of the task publishes this."""
        self._count = 0
        if self._state.task.activity.limited_at is not None:
            self._state.task = replace_fields(self._state.task, limited_at=None)

    def _show(self, at: datetime) -> None:
        """Publish changes only: the status of a resumed task, or an end that moved with the clock."""
        task = self._state.task
        has_moved = task.activity.retry_at is None or abs(at - task.activity.retry_at) > _TOLERANCE
        if has_moved or task.activity.status != "paused":
            self._state.set(self._waiting_task(task, at if has_moved else task.activity.retry_at or at))

    def _waiting_task(self, task: Task, at: datetime) -> Task:
        activity = task.activity.detail if task.activity.stopping else f"{self._reason} until {_local_time(at)}"
        return replace_fields(
            with_status(task, "paused"), retry_at=at, current_tool=None, calls=(), detail=activity, attempt=0
        )

    def _left_s(self, at: datetime) -> float:
        return (at - self._now()) / timedelta(seconds=1)

    def _first_left_s(self, at: datetime) -> float:
        """Never longer than `longest`: the stored time may come from a wrong clock."""
        since = self._state.task.activity.limited_at
        if since is not None and since > self._now():
            return 0.0
        return min(self._left_s(at), self._waits.longest / timedelta(seconds=1))

    def _guess_s(self) -> float:
        return min(self._waits.first_s * 2**self._count, self._waits.longest_guess_s)


def _local_time(at: datetime) -> str:
    """Return the local time of day; with the weekday if it is not today."""
    local = at.astimezone()
    return f"{local:%H:%M}" if local.date() == datetime.now(UTC).astimezone().date() else f"{local:%a %H:%M}"
