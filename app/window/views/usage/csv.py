"""A report as comma-separated values, for a spreadsheet. Pure."""

import csv
import io

from app.protocol.usage import UsageReportResult, UsageRow

_HEAD = (
    "by",
    "key",
    "title",
    "cost_usd",
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "turns",
    "tasks",
    "unpriced_turns",
    "estimated",
)


def csv_of(report: UsageReportResult) -> str:
    """Days, models and conversations, told apart by the first column."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(_HEAD)
    lines.writerows(_line(row) for row in (*report.days, *report.models, *report.conversations))
    return text.getvalue()


def _line(row: UsageRow) -> tuple[str | int | float, ...]:
    used = row.usage
    cost = "" if used.cost_usd is None else used.cost_usd
    counts = (used.input_tokens, used.cache_read_tokens, used.cache_write_tokens, used.output_tokens)
    return (
        row.by,
        row.key,
        _safe(row.title),
        cost,
        *counts,
        row.turns,
        row.tasks,
        row.unpriced_turns,
        int(used.estimated),
    )


def _safe(title: str) -> str:
    """A title that a spreadsheet would take for a formula is marked as text."""
    return f"'{title}" if title[:1] in ("=", "+", "-", "@", "\t", "\r") else title
