"""The usage table."""

from datetime import date, datetime, timedelta, timezone

import msgspec

from errand.cli.commands.usage import format_usage
from errand.cli.terminal.style import PLAIN
from errand.client.texts.usage import period_of, unpriced_text
from errand.protocol.usage import Usage, UsageReportParams, UsageReportResult, UsageRow


def row(title: str, tokens: int, cost: float | None, unpriced: int = 0) -> UsageRow:
    usage = Usage(input_tokens=tokens, output_tokens=tokens // 10, cache_read_tokens=1, cost_usd=cost)
    return UsageRow(by="day", key=title, title=title, usage=usage, turns=3, tasks=1, unpriced_turns=unpriced)


def report(*rows: UsageRow, total: UsageRow) -> UsageReportResult:
    return UsageReportResult(total=total, days=rows, models=(), conversations=())


def test_rows_are_aligned_and_unpriced_turns_are_reported() -> None:
    rows = (row("2026-11-19", 1234567, 1.5), row("2026-11-20", 10, None, 2))
    assert format_usage(report(*rows, total=row("", 1234577, 1.5, 2)), "day", PLAIN) == [
        "day         money  tokens in      out  cached  turns  tasks",
        "2026-11-19  $1.50  1,234,567  123,456       1      3      1",
        "2026-11-20      ?         10        1       1      3      1",
        "total       $1.50  1,234,577  123,457       1      3      1",
        "The prices of 2 turns are unknown and not included.",
    ]


def test_tokens_that_no_provider_counted_are_marked() -> None:
    stopped = msgspec.structs.replace(row("", 1200, 0.5), usage=Usage(input_tokens=1200, cost_usd=0.5, estimated=True))
    assert format_usage(report(total=stopped), "day", PLAIN)[-1].split()[1:4] == ["~$0.5000", "~1,200", "0"]


def test_empty_usage_is_reported() -> None:
    nothing = UsageRow(by="day", key="", title="", usage=Usage(), turns=0, tasks=0)
    assert format_usage(report(total=nothing), "model", PLAIN) == ["No usage in this period."]
    assert unpriced_text(nothing) == ""


def test_period_includes_today_in_the_local_time_zone() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    now = datetime(2026, 11, 20, 1, tzinfo=zone)
    offset = period_of(None).utc_offset_minutes
    assert period_of(None) == UsageReportParams(utc_offset_minutes=offset)
    here = now.astimezone()
    assert period_of(7, now).since == here.date() - timedelta(days=6)
    assert period_of(1, now).since == here.date() != date(1970, 1, 1)
