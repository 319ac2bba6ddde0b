"""Limits of a task (turns, time, money, tokens) and the daily budget of all tasks (decision 8)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Generic, TypeVar, assert_never

from errand.engine.core.settings import Settings
from errand.engine.event_log import EventLog
from errand.engine.storage.records.usage import UsageStore
from errand.protocol.notices import LimitShare
from errand.protocol.tasks.groups import DayLimitKind, LimitKind, TaskLimitKind, TaskStopReason
from errand.protocol.usage import Usage

Kind = TypeVar("Kind", bound=LimitKind, covariant=True)

_NEAR = 0.8
_REASONS: dict[LimitKind, TaskStopReason] = {
    "turns": "iteration_limit",
    "minutes": "time_limit",
    "money": "budget_limit",
    "tokens": "token_limit",
    "day_money": "day_limit",
    "day_tokens": "day_limit",
}

_KINDS: tuple[DayLimitKind, ...] = ("day_money", "day_tokens")


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """The limits that a task reaches before it asks; None means no limit."""

    turns: int
    minutes: float | None = None
    budget_usd: float | None = None
    tokens: int | None = None

    def get(self, kind: TaskLimitKind) -> float | None:
        match kind:
            case "turns":
                return self.turns
            case "minutes":
                return self.minutes
            case "money":
                return self.budget_usd
            case "tokens":
                return self.tokens
            case _:
                assert_never(kind)

    def with_limit(self, kind: TaskLimitKind, to: float) -> "TaskLimits":
        match kind:
            case "turns":
                return replace(self, turns=int(to))
            case "minutes":
                return replace(self, minutes=to)
            case "money":
                return replace(self, budget_usd=to)
            case "tokens":
                return replace(self, tokens=int(to))
            case _:
                assert_never(kind)


@dataclass(frozen=True, slots=True)
class LimitUse(Generic[Kind]):
    """A task's use of one limit, in the unit of that limit."""

    kind: Kind
    used: float
    limit: float

    @property
    def reason(self) -> TaskStopReason:
        return _REASONS[self.kind]

    @property
    def share(self) -> LimitShare:
        return LimitShare(limit=self.kind, used=self.used, value=self.limit)


def near_limits(uses: Iterable[LimitUse[LimitKind]]) -> tuple[LimitUse[LimitKind], ...]:
    """Return the limits that are at least 80 % used."""
    return tuple(used for used in uses if used.used >= _NEAR * used.limit)


def reached_limit(uses: Iterable[LimitUse[Kind]]) -> LimitUse[Kind] | None:
    """Return the first limit that leaves nothing for a further turn."""
    return next((used for used in uses if used.used >= used.limit), None)


def limit_uses(limits: TaskLimits, turns: int, seconds: float, usage: Usage) -> Iterator[LimitUse[TaskLimitKind]]:
    """Yield a task's use of each of its limits."""
    used: dict[TaskLimitKind, float] = {
        "turns": turns,
        "minutes": seconds / 60,
        "money": usage.cost_usd or 0.0,
        "tokens": usage.input_tokens + usage.output_tokens,
    }
    for kind, amount in used.items():
        limit = limits.get(kind)
        if limit is not None:
            yield LimitUse(kind, amount, limit)


class DailyBudget:
    """The daily budget of all tasks. Without a limit in the settings, nothing is read from storage."""

    def __init__(self, log: EventLog, usage: UsageStore, settings: Settings) -> None:
        self._log = log
        self._usage = usage
        self._settings = settings
        self._raised: dict[DayLimitKind, tuple[datetime, float]] = {}

    def configured_limit(self, kind: DayLimitKind) -> float:
        """Return the limit of the settings; 0 means none."""
        values = self._settings.values
        return values.day_budget_usd if kind == "day_money" else values.day_max_tokens

    async def uses(self) -> tuple[LimitUse[DayLimitKind], ...]:
        """Today's use of each limit, including writes that are still pending."""
        if not any(map(self.configured_limit, _KINDS)):
            return ()
        await self._log.flush()
        day = _midnight()
        tokens, cost = await self._usage.between(day, _midnight_after(day))
        used: dict[DayLimitKind, float] = {"day_money": cost, "day_tokens": tokens}
        return tuple(
            LimitUse(kind, used[kind], self._limit(kind, day)) for kind in _KINDS if self.configured_limit(kind)
        )

    def raise_limit(self, kind: DayLimitKind, to: float) -> None:
        day = _midnight()
        self._raised[kind] = (day, max(to, self._limit(kind, day)))

    def _limit(self, kind: DayLimitKind, day: datetime) -> float:
        raised_on, to = self._raised.get(kind, (day, 0.0))
        return max(self.configured_limit(kind), to) if raised_on == day else self.configured_limit(kind)


def _midnight() -> datetime:
    """Return the last local midnight; its UTC offset may differ from now if the clocks changed."""
    now = datetime.now(UTC).astimezone()
    return now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None).astimezone()


def _midnight_after(midnight: datetime) -> datetime:
    """Return the next local midnight. Entries dated ahead by a wrong clock count for the day of their date."""
    return datetime.combine(midnight.date() + timedelta(days=1), time.min).astimezone()
