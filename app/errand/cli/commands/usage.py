"""`errand usage`: tokens and cost as a table."""

from typing import Annotated

import msgspec

from errand.cli.command import Command
from errand.cli.options import CommandOptions, Flag, Option
from errand.cli.terminal.style import Style
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import columns, one_line
from errand.client.launch import connect
from errand.client.number_format import money, token_count
from errand.client.texts.usage import period_of, unpriced_text
from errand.protocol.usage import USAGE_REPORT, UsageKey, UsageReportResult, UsageRow
from errand.system.paths import Paths
from errand.text.translation import tr

_HEADS = ("money", tr("tokens in"), "out", "cached", "turns", "tasks")
_MAX_NAME_LENGTH = 44


class UsageOptions(CommandOptions, frozen=True, kw_only=True):
    days: Annotated[int, Option("--days", "the last N days (default: 30)", "N")] = 30
    by: Annotated[UsageKey, Option("--by", "group by (default: day)")] = "day"
    json: Annotated[bool, Flag("--json", "print the report as one JSON object")] = False


async def show_usage(options: UsageOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand usage") as connection:
        found = await connection.call(USAGE_REPORT, period_of(options.days))
    if options.json:
        terminal.line(msgspec.json.encode(found).decode())
        return 0
    for line in format_usage(found, options.by, terminal.style):
        terminal.line(line)
    return 0


USAGE = Command(UsageOptions, show_usage)


def format_usage(found: UsageReportResult, by: str, style: Style) -> list[str]:
    """One row each, then the sum and a note about unknown prices."""
    if not found.total.turns:
        return [tr("No usage in this period.")]
    rows = {"day": found.days, "model": found.models, "conversation": found.conversations}[by]
    table = [(by, *_HEADS), *(_cells(row, row.title) for row in rows), _cells(found.total, tr("total"))]
    widths = [max(columns(cells[place]) for cells in table) for place in range(len(table[0]))]
    lines = ["  ".join(_aligned(cells, widths)).rstrip() for cells in table]
    notes = [style.amber(note) for note in (unpriced_text(found.total),) if note]
    return [style.dim(lines[0]), *lines[1:-1], style.bold(lines[-1]), *notes]


def _cells(row: UsageRow, name: str) -> tuple[str, ...]:
    used = row.usage
    sent, given = token_count(used.input_tokens, used), token_count(used.output_tokens, used)
    numbers = (f"{number:,}" for number in (used.cache_read_tokens, row.turns, row.tasks))
    return one_line(name, _MAX_NAME_LENGTH), money(used) or "?", sent, given, *numbers


def _aligned(cells: tuple[str, ...], widths: list[int]) -> list[str]:
    """The name aligned left, numbers aligned right."""
    gaps = [" " * (width - columns(cell)) for cell, width in zip(cells, widths, strict=True)]
    return [cells[0] + gaps[0], *(gap + cell for cell, gap in zip(cells[1:], gaps[1:], strict=True))]
