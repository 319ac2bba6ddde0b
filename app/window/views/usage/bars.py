"""What the chart draws: one bar a day, or a month where there are too many days, empty ones too. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from app.client.figures import count, money
from app.protocol.usage import Usage, UsageReportResult, UsageRow

_MOST_DAYS = 100


@dataclass(frozen=True, slots=True)
class Bar:
    """`label` stands below it; `words` say all that is known of it."""

    label: str
    words: str
    value: float


@dataclass(frozen=True, slots=True)
class Bars:
    """`unit` is what the values are: dollars, or tokens where nothing was paid."""

    title: str
    unit: str
    bars: tuple[Bar, ...]


def bars_of(report: UsageReportResult, days: int | None, today: date) -> Bars:
    """Of a period that ends today."""
    unit = "money" if report.total.usage.cost_usd else "tokens"
    used = {date.fromisoformat(row.key): row for row in report.days}
    first = min(used, default=today) if days is None else today - timedelta(days=days - 1)
    shown = [first + timedelta(days=number) for number in range((max(today, *used) - first).days + 1)]
    if len(shown) <= _MOST_DAYS:
        bars = [_bar(f"{day.day} {day:%b}", _long(day), [used[day]] if day in used else [], unit) for day in shown]
        return Bars(f"{unit.capitalize()} per day", unit, tuple(bars))
    months = dict.fromkeys((day.year, day.month) for day in shown)
    of_month = {month: [row for day, row in used.items() if (day.year, day.month) == month] for month in months}
    bars = [
        _bar(date(year, month, 1).strftime("%b %Y"), date(year, month, 1).strftime("%B %Y"), rows, unit)
        for (year, month), rows in of_month.items()
    ]
    return Bars(f"{unit.capitalize()} per month", unit, tuple(bars))


def spoken(rows: Sequence[UsageRow]) -> str:
    """The figures of some rows in a line."""
    if not rows:
        return "nothing used"
    costs = [row.usage.cost_usd for row in rows if row.usage.cost_usd is not None]
    parts = (
        dollars(sum(costs)) if costs else "",
        count(sum(map(tokens_of, rows)), "token"),
        count(sum(row.turns for row in rows), "turn"),
        count(sum(row.tasks for row in rows), "task"),
    )
    return " · ".join(part for part in parts if part)


def tokens_of(row: UsageRow) -> int:
    return row.usage.input_tokens + row.usage.output_tokens


def top_of(bars: Bars) -> float:
    """Where the scale ends: the next round number above the highest bar."""
    most = max((bar.value for bar in bars.bars), default=0.0)
    if most <= 0:
        return 1.0
    size = 10 ** math.floor(math.log10(most))
    return next(step * size for step in (1, 2, 4, 6, 8, 10) if step * size >= most)


def amount_words(amount: float, unit: str) -> str:
    """A number on the scale, short."""
    if unit == "money":
        return dollars(amount)
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if amount >= size:
            return f"{amount / size:.3g}{sign}"
    return f"{amount:.0f}"


def dollars(amount: float) -> str:
    """As money is written everywhere."""
    return money(Usage(cost_usd=amount))


def _bar(label: str, name: str, rows: Sequence[UsageRow], unit: str) -> Bar:
    paid = unit == "money"
    value = sum((row.usage.cost_usd or 0.0) if paid else tokens_of(row) for row in rows)
    return Bar(label, f"{name}: {spoken(rows)}", value)


def _long(day: date) -> str:
    return f"{day.day} {day:%B %Y}"
