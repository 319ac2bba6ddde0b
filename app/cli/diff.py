"""A unified diff as coloured lines, indented under its tool line and cut where it grows long."""

from collections.abc import Iterator

from app.cli.plain import cut, plain
from app.cli.style import Style

MOST_LINES = 40


def diff_lines(diff: str, width: int, style: Style) -> list[str]:
    """The changed lines with their context; file headers are left out, for the tool line names the file."""
    lines = [line for line in plain(diff).splitlines() if not line.startswith(("--- ", "+++ "))]
    shown = [_painted(line, width, style) for line in _without_first_hunk_mark(lines)]
    if len(shown) > MOST_LINES:
        left_out = len(shown) - MOST_LINES
        return [*shown[:MOST_LINES], style.dim(f"    … {left_out:,} more lines")]
    return shown


def _without_first_hunk_mark(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number or not line.startswith("@@"):
            yield line


def _painted(line: str, width: int, style: Style) -> str:
    short = ("    " + cut(line.expandtabs(4), max(12, width - 4))).rstrip()
    if line.startswith("+"):
        return style.green(short)
    if line.startswith("-"):
        return style.red(short)
    return style.dim(short)
