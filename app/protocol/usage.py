"""Tokens, money and time."""

from datetime import date
from typing import Literal

from app.protocol.base import Method, Wire

UsageKey = Literal["day", "model", "conversation"]


class Usage(Wire, frozen=True, kw_only=True):
    """Sums. `input_tokens` includes the cached ones; `cost_usd` is null when the model's price is not known.

    `estimated`: the provider did not count all of it, as of a reply that was stopped.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    estimated: bool = False


class UsageReportParams(Wire, frozen=True, kw_only=True):
    """What was used from day `since` to day `until`, both included; null is without a bound.

    Days are those of the time zone `utc_offset_minutes` east of UTC.
    """

    since: date | None = None
    until: date | None = None
    utc_offset_minutes: int = 0


class UsageRow(Wire, frozen=True, kw_only=True):
    """`key` is a day (YYYY-MM-DD), a model's or a conversation's id, `title` how it is called.

    `usage.cost_usd` sums the turns whose price is known; `unpriced_turns` counts the others. `tasks` counts those that
    began in it.
    """

    by: UsageKey
    key: str
    title: str
    usage: Usage
    turns: int
    tasks: int
    unpriced_turns: int = 0


class UsageReportResult(Wire, frozen=True, kw_only=True):
    """`days` oldest first, without those on which nothing was used; the others by money, then tokens, most first.

    Of conversations the first 200. `total` has the key "".
    """

    total: UsageRow
    days: tuple[UsageRow, ...]
    models: tuple[UsageRow, ...]
    conversations: tuple[UsageRow, ...]


def add_usage(total: Usage, turn: Usage) -> Usage:
    """Costs add up where they are known; the sum is unknown only while nothing was."""
    costs = [usage.cost_usd for usage in (total, turn) if usage.cost_usd is not None]
    return Usage(
        input_tokens=total.input_tokens + turn.input_tokens,
        output_tokens=total.output_tokens + turn.output_tokens,
        cache_read_tokens=total.cache_read_tokens + turn.cache_read_tokens,
        cache_write_tokens=total.cache_write_tokens + turn.cache_write_tokens,
        cost_usd=sum(costs) if costs else None,
        seconds=total.seconds + turn.seconds,
        estimated=total.estimated or turn.estimated,
    )


USAGE_REPORT = Method("usage/report", UsageReportParams, UsageReportResult, False, "Tokens and money.")
