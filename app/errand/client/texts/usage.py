"""Usage: the period of a report, and what is missing in its sums."""

from datetime import UTC, datetime, timedelta

from errand.protocol.usage import UsageReportParams, UsageRow
from errand.text.translation import trn


def period_of(days: int | None, now: datetime | None = None) -> UsageReportParams:
    """Return the last `days` days including today, None for all; days are in this machine's time zone."""
    here = (now or datetime.now(UTC)).astimezone()
    offset = here.utcoffset() or timedelta()
    since = here.date() - timedelta(days=days - 1) if days is not None else None
    return UsageReportParams(since=since, utc_offset_minutes=round(offset.total_seconds() / 60))


def unpriced_text(row: UsageRow) -> str:
    """Empty if all prices are known."""
    if not row.unpriced_turns:
        return ""
    return trn(
        "The price of {n} turn is unknown and not included.",
        "The prices of {n} turns are unknown and not included.",
        row.unpriced_turns,
    )
