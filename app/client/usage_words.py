"""What was used, in the words that the faces share: the period that is asked for, and what is not known of it."""

from datetime import UTC, datetime, timedelta

from app.client.figures import count
from app.protocol.usage import UsageReportParams, UsageRow


def period_of(days: int | None, now: datetime | None = None) -> UsageReportParams:
    """The last `days` days with today, None for all; days are those of this machine's time zone."""
    here = (now or datetime.now(UTC)).astimezone()
    offset = here.utcoffset() or timedelta()
    since = here.date() - timedelta(days=days - 1) if days is not None else None
    return UsageReportParams(since=since, utc_offset_minutes=round(offset.total_seconds() / 60))


def unpriced_words(row: UsageRow) -> str:
    """Empty where all prices are known."""
    if not row.unpriced_turns:
        return ""
    return f"The price is not known for {count(row.unpriced_turns, 'turn')}: the money is that of the others."
