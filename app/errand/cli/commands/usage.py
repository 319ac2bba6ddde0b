"""`errand usage`: tokens and cost as a table."""

from typing import Annotated

from errand.cli.command import Command
from errand.cli.options import CommandOptions, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import aligned, one_line
from errand.client.launch import connect
from errand.client.number_format import money, token_count
from errand.client.texts.usage import period_of, unpriced_text
from errand.protocol.usage import USAGE_REPORT, UsageKey, UsageReportResult, UsageRow
from errand.system.paths import Paths
from errand.text.translation import marked, tr

_HEADS = ("money", tr("tokens in"), "out", "cached", "turns", "tasks")
_MAX_NAME_LENGTH = 44


class UsageOptions(CommandOptions, frozen=True, kw_only=True):
    days: Annotated[int, Option("--days", "the last N days (default: 30)", "N")] = 30
    by: Annotated[UsageKey, Option("--by", "group by (default: day)")] = "day"


async def show_usage(options: UsageOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand usage") as connection:
        report = await connection.call(USAGE_REPORT, period_of(options.days))
    output.result(report, *format_usage(report, options.by, output.style))
    return 0


USAGE = Command(UsageOptions, show_usage, json_help=marked("print the report as one JSON object"))


def format_usage(report: UsageReportResult, by: str, style: Style) -> list[str]:
    """Return a row for each day, model or conversation, then the sum and a note about unknown prices."""
    if not report.total.turns:
        return [tr("No usage in this period.")]
    rows = {"day": report.days, "model": report.models, "conversation": report.conversations}[by]
    table = [(by, *_HEADS), *(_cells(row, row.title) for row in rows), _cells(report.total, tr("total"))]
    lines = aligned(table, right=range(1, len(table[0])))
    notes = [style.amber(note) for note in (unpriced_text(report.total),) if note]
    return [style.dim(lines[0]), *lines[1:-1], style.bold(lines[-1]), *notes]


def _cells(row: UsageRow, name: str) -> tuple[str, ...]:
    usage = row.usage
    tokens = token_count(usage.input_tokens, usage), token_count(usage.output_tokens, usage)
    numbers = (f"{number:,}" for number in (usage.cache_read_tokens, row.turns, row.tasks))
    return one_line(name, _MAX_NAME_LENGTH), money(usage) or "?", *tokens, *numbers
