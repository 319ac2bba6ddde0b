"""A unified diff as coloured lines, indented under its tool line."""

from collections.abc import Iterator

from app.cli.plain import cut, exact, plain
from app.cli.style import Style

MOST_LINES = 40


def diff_lines(diff: str, width: int, style: Style) -> list[str]:
    """The changed lines with their context, cut where they grow long; the tool line names the file."""
    shown = _lines(plain(diff), style, max(12, width - 4))
    if len(shown) > MOST_LINES:
        left_out = len(shown) - MOST_LINES
        return [*shown[:MOST_LINES], style.dim(f"    … {left_out:,} more lines")]
    return shown


def whole_diff_lines(diff: str, style: Style) -> list[str]:
    """All of it, as who is to allow it must see it."""
    return _lines(exact(diff), style, None)


def _lines(diff: str, style: Style, room: int | None) -> list[str]:
    lines = _without_header(diff.split("\n"))
    return [_painted(line, room, style) for line in _without_first_hunk_mark(lines) if line]


def _without_header(lines: list[str]) -> list[str]:
    """The header is the first two lines only: further down the same signs begin a change, such as SQL's `-- x`."""
    is_header = len(lines) > 1 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")
    return lines[2:] if is_header else lines


def _without_first_hunk_mark(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number or not line.startswith("@@"):
            yield line


def _painted(line: str, room: int | None, style: Style) -> str:
    line = line.expandtabs(4)
    short = ("    " + (line if room is None else cut(line, room))).rstrip()
    if line.startswith("+"):
        return style.green(short)
    if line.startswith("-"):
        return style.red(short)
    return style.dim(short)
