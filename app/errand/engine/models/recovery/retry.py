"""When to retry a failed attempt: exponential back-off, and the wait that a provider asks for."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from errand.engine.models.base import RetryLater
from errand.engine.models.failures import AttemptFailure, FailureKind
from errand.engine.models.recovery.table import allows


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Delays double from `first_delay_s` to `longest_delay_s`, each with up to 25 % jitter.

    A wait that the provider asks for is honoured up to `longest_asked_s`; a longer one is left to the caller.
    """

    attempts: int = 5
    first_delay_s: float = 0.5
    longest_delay_s: float = 30.0
    longest_asked_s: float = 10.0

    def delay(self, attempt: int, failure: AttemptFailure) -> float | None:
        """Return the seconds to wait after the failed `attempt` (from 1), None after the last one."""
        if not allows("retry", failure.kind) or attempt >= self.attempts:
            return None
        asked = failure.retry_after_s
        if asked is not None:
            return asked if asked <= self.longest_asked_s else None
        longest = min(self.first_delay_s * 2 ** (attempt - 1), self.longest_delay_s)
        return longest * random.uniform(0.75, 1.25)

    def retry_later(self, failure: AttemptFailure) -> RetryLater | None:
        """Return when the caller may send the request again; None if waiting would not help."""
        asked = failure.retry_after_s
        if allows("retry", failure.kind) and asked is not None and asked > self.longest_asked_s:
            return RetryLater(failure.short, datetime.now(UTC) + timedelta(seconds=asked))
        return RetryLater(failure.short) if failure.kind is FailureKind.RATE_LIMITED else None
