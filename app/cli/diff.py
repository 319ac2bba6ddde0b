"""A unified diff as coloured lines, indented under its tool line."""

from collections.abc import Iterator

from app.cli.plain import cut, exact
from app.cli.style import Style
from app.client.call_words import without_file_names

MOST_LINES = 40


def diff_lines(diff: str, width: int, style: Style) -> list[str]:
    """The changed lines with their context, cut where they grow long; the tool line names the file."""
    room = max(12, width - 4)
    shown = [_painted(line, cut(line, room), style) for line in _lines(diff)]
    if len(shown) > MOST_LINES:
        left_out = len(shown) - MOST_LINES
        return [*shown[:MOST_LINES], style.dim(f"    … {left_out:,} more lines")]
    return shown


def whole_diff_lines(diff: str, style: Style, width: int) -> list[str]:
    """All of it, as who is to allow it must see it: what goes on in the next line stays indented."""
    room = max(12, width - 5)
    return [_painted(line, piece, style) for line in _lines(diff) for piece in _pieces(line, room)]


def _pieces(line: str, room: int) -> list[str]:
    rest = [f" {line[at : at + room]}" for at in range(room, len(line), room)]
    return [line[:room], *rest]


def _lines(diff: str) -> list[str]:
    lines = without_file_names(exact(diff)).split("\n")
    return [line.expandtabs(4) for line in _without_first_hunk_mark(lines) if line]


def _without_first_hunk_mark(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number or not line.startswith("@@"):
            yield line


def _painted(line: str, shown: str, style: Style) -> str:
    """What is shown of a line, in the line's colour."""
    text = f"    {shown}".rstrip()
    if line.startswith("+"):
        return style.green(text)
    if line.startswith("-"):
        return style.red(text)
    return style.dim(text)
