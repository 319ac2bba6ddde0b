"""Another attempt after failures that may pass, with back-off; closing a model ends its streams."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from app.engine.core.cancel import CancelSignal
from app.engine.core.messages import AssistantMessage, Usage
from app.engine.models.base import ModelEvent, ModelRequest, ReplyEnd, ReplyStart, Retry, RetryLater
from app.engine.models.failures import ABORTED, AttemptFailure, FailedAttempt, FailureKind
from app.engine.models.recovery.table import RECOVERY
from app.engine.models.reply.usage import add_usage, usage_or_estimate, with_usage

AttemptEvents: TypeAlias = AsyncGenerator[ModelEvent | FailedAttempt, None]
Attempt: TypeAlias = Callable[[ModelRequest, CancelSignal], AttemptEvents]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Delays double from `first_delay_s` to `longest_delay_s`, each up to a quarter shorter or longer by chance.

    A provider that names a wait is obeyed up to `longest_asked_s`; a longer one is the caller's.
    """

    attempts: int = 5
    first_delay_s: float = 0.5
    longest_delay_s: float = 30.0
    longest_asked_s: float = 10.0

    def delay(self, attempt: int, failure: AttemptFailure) -> float | None:
        """Seconds to wait after the failed `attempt` (from 1), None when it was the last."""
        if "retry" not in RECOVERY[failure.kind] or attempt >= self.attempts:
            return None
        asked = failure.retry_after_s
        if asked is not None:
            return asked if asked <= self.longest_asked_s else None
        longest = min(self.first_delay_s * 2 ** (attempt - 1), self.longest_delay_s)
        return longest * random.uniform(0.75, 1.25)

    def later(self, failure: AttemptFailure) -> RetryLater | None:
        """When to ask again for a reply that is given up here; None where that would not help."""
        asked = failure.retry_after_s
        if "retry" in RECOVERY[failure.kind] and asked is not None and asked > self.longest_asked_s:
            return RetryLater(failure.short, datetime.now(UTC) + timedelta(seconds=asked))
        return RetryLater(failure.short) if failure.kind is FailureKind.RATE_LIMITED else None


async def with_retries(
    attempt: Attempt, request: ModelRequest, stop: CancelSignal, policy: RetryPolicy
) -> AsyncGenerator[ModelEvent, None]:
    """One reply from as many attempts as it takes; the last event is always `ReplyEnd`, with what all of them took."""
    number = 0
    spent = Usage()
    while True:
        number += 1
        failed: FailedAttempt | None = None
        has_begun = False
        async with aclosing(attempt(request, stop)) as events:
            async for event in events:
                match event:
                    case FailedAttempt():
                        failed = event
                    case ReplyEnd():
                        yield replace(event, message=_with_all(event.message, request, has_begun, spent))
                    case _:
                        has_begun = has_begun or isinstance(event, ReplyStart)
                        yield event
        if failed is None:
            return
        failed = replace(failed, partial=_with_all(failed.partial, request, has_begun, spent))
        spent = failed.partial.usage
        delay = policy.delay(number, failed.failure)
        if delay is None:
            failure = failed.failure
            message = _failed_message(failed, number)
            yield ReplyEnd(message, policy.later(failure), failure.kind)
            return
        yield Retry(number, policy.attempts, delay, failed.failure.short, failed.partial)
        if await _is_set_within(stop, delay):
            yield ReplyEnd(AssistantMessage(stop_reason="aborted", error=ABORTED, model=request.model, usage=spent))
            return


def _with_all(message: AssistantMessage, request: ModelRequest, has_begun: bool, spent: Usage) -> AssistantMessage:
    """The message with what it took, and what the attempts before it did. One that never began took nothing."""
    has_begun = has_begun or message.usage != Usage()
    return with_usage(message, add_usage(spent, usage_or_estimate(request, message)) if has_begun else spent)


def _failed_message(failed: FailedAttempt, attempts: int) -> AssistantMessage:
    text = failed.failure.text
    if attempts > 1:
        text = f"{text} (Tried {attempts} times.)"
    return replace(failed.partial, stop_reason="error", error=text)


async def _is_set_within(stop: CancelSignal, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return False
    return True


class ActiveStreams:
    """Gives each stream a stop signal that follows the task's cancel signal and the closing of the model."""

    def __init__(self) -> None:
        self._stops: set[CancelSignal] = set()
        self._closed = False

    @contextmanager
    def join(self, cancel: CancelSignal) -> Generator[CancelSignal]:
        stop = CancelSignal()
        if self._closed:
            stop.set("the model was closed")
        unsubscribe = cancel.subscribe(lambda: stop.set(cancel.reason))
        self._stops.add(stop)
        try:
            yield stop
        finally:
            unsubscribe()
            self._stops.discard(stop)

    async def of(
        self, attempt: Attempt, request: ModelRequest, cancel: CancelSignal, retry: RetryPolicy
    ) -> AsyncGenerator[ModelEvent, None]:
        """The stream of one reply, from as many attempts as it takes."""
        with self.join(cancel) as stop:
            async with aclosing(with_retries(attempt, request, stop, retry)) as events:
                async for event in events:
                    yield event

    def close(self) -> None:
        self._closed = True
        for stop in tuple(self._stops):
            stop.set("the model was closed")
