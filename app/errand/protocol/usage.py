"""Tokens, money and time."""

from datetime import date
from typing import Literal

from errand.protocol.base import Method, Wire

UsageKey = Literal["day", "model", "conversation"]


class Usage(Wire, frozen=True, kw_only=True):
    """Sums. `input_tokens` includes cached ones; `cost_usd` is null if the model's price is unknown.

    `estimated`: the provider did not count everything, for example for a reply that was stopped.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    estimated: bool = False


class UsageReportParams(Wire, frozen=True, kw_only=True):
    """Usage from day `since` to day `until`, both included; null is unbounded.

    Days are those of the time zone `utc_offset_minutes` east of UTC.
    """

    since: date | None = None
    until: date | None = None
    utc_offset_minutes: int = 0


class UsageRow(Wire, frozen=True, kw_only=True):
    """`key` is a day (YYYY-MM-DD), a model's id or a conversation's id; `title` is its display name.

    `usage.cost_usd` sums the turns with a known price; `unpriced_turns` counts the others. `tasks` counts the tasks
    that started in it.
    """

    by: UsageKey
    key: str
    title: str
    usage: Usage
    turns: int
    tasks: int
    unpriced_turns: int = 0


class UsageReportResult(Wire, frozen=True, kw_only=True):
    """`days` are oldest first, without unused days. The others are sorted by cost, then tokens, highest first.

    `conversations` has the first 200. `total` has the key "".
    """

    total: UsageRow
    days: tuple[UsageRow, ...]
    models: tuple[UsageRow, ...]
    conversations: tuple[UsageRow, ...]


def add_usage(total: Usage, turn: Usage) -> Usage:
    """Sums known costs; the sum is None only if no cost is known."""
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


USAGE_REPORT = Method("usage/report", UsageReportParams, UsageReportResult, False, "Get tokens and cost.")

METHODS = (USAGE_REPORT,)
