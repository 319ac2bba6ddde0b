"""The limits of a day, for all tasks together: what was used on this date where the engine runs, read from the turns.

What a person allows beyond a limit holds until the end of that day or of the engine; see docs/decisions/0008.
"""

from datetime import UTC, datetime, time, timedelta

from app.engine.agent.limits import Used
from app.engine.broadcast import EventLog
from app.engine.settings import Settings
from app.engine.storage.usage import UsageStore
from app.protocol.tasks import DayLimitKind

_KINDS: tuple[DayLimitKind, ...] = ("day_money", "day_tokens")


class Day:
    """One for all tasks. Without a limit in the settings nothing is read."""

    def __init__(self, log: EventLog, usage: UsageStore, settings: Settings) -> None:
        self._log = log
        self._usage = usage
        self._settings = settings
        self._raised: dict[DayLimitKind, tuple[datetime, float]] = {}

    def given(self, kind: DayLimitKind) -> float:
        """The limit of the settings; 0 is none."""
        values = self._settings.values
        return values.day_budget_usd if kind == "day_money" else values.day_max_tokens

    async def uses(self) -> tuple[Used[DayLimitKind], ...]:
        """How much of each limit was used today, with all that is on its way to the record."""
        if not any(map(self.given, _KINDS)):
            return ()
        await self._log.flush()
        day = _midnight()
        tokens, cost = await self._usage.between(day, _midnight_after(day))
        used: dict[DayLimitKind, float] = {"day_money": cost, "day_tokens": tokens}
        return tuple(Used(kind, used[kind], self._limit(kind, day)) for kind in _KINDS if self.given(kind))

    def allow(self, kind: DayLimitKind, to: float) -> None:
        day = _midnight()
        self._raised[kind] = (day, max(to, self._limit(kind, day)))

    def _limit(self, kind: DayLimitKind, day: datetime) -> float:
        raised_on, to = self._raised.get(kind, (day, 0.0))
        return max(self.given(kind), to) if raised_on == day else self.given(kind)


def _midnight() -> datetime:
    """The last one here; a day on which the clocks change has its own offset."""
    now = datetime.now(UTC).astimezone()
    return now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None).astimezone()


def _midnight_after(midnight: datetime) -> datetime:
    """What a clock that was ahead has dated counts on the day that it showed."""
    return datetime.combine(midnight.date() + timedelta(days=1), time.min).astimezone()
