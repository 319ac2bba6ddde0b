"""Text for a terminal: sanitized, truncated, wrapped, in columns; short ids and usage in one line."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from errand.cli.terminal.style import Style
from errand.client import number_format
from errand.client.safe_text import escape_hidden as escape_hidden
from errand.client.safe_text import escape_hidden_line as escape_hidden_line
from errand.client.safe_text import plain as plain
from errand.protocol.tasks.task import Task
from errand.text.redaction import redact
from errand.text.translation import tr

_COUNTED = re.compile(r"(?<=[0-9a-f]{8})_\d{1,2}$")  # the id of a task beside the first of a comparison
_NARROWEST = 48
_GAP = "  "
_MAX_INDENT_LEVELS = 8


def one_line(text: str, width: int) -> str:
    """Return the text on one line, truncated with an ellipsis to `width` columns. Keys are redacted before that."""
    return cut(redact(" ".join(plain(text).split())), width)


def indent(depth: int) -> str:
    """Two columns a level, at most those of eight levels."""
    return "  " * min(depth, _MAX_INDENT_LEVELS)


def padded(text: str, width: int) -> str:
    """Return the text with blanks after it, up to `width` columns."""
    return text + " " * (width - columns(text))


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return the rows as lines with their cells in columns, two blanks apart; the columns in `right` end alike."""
    widths = [max(map(visible_columns, cells)) for cells in zip(*rows, strict=True)]
    return [_GAP.join(_aligned_cells(row, widths, right)).rstrip() for row in rows]


def _aligned_cells(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> Iterator[str]:
    for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
        blanks = " " * (width - visible_columns(cell))
        yield blanks + cell if column in right else cell + blanks


def cut(text: str, width: int) -> str:
    if columns(text) <= width:
        return text
    used, end = 1, 0
    for character in text:
        used += columns(character)
        if used > width:
            break
        end += 1
    return text[:end].rstrip() + "…"


def cut_start(text: str, width: int) -> str:
    """Return the end of the text, after an ellipsis, if it is longer than `width` columns."""
    return cut(text[::-1], width)[::-1]


def wrapped(text: str, width: int) -> str:
    """Wrap lines longer than `width` at blanks; a longer word stays whole."""
    return "".join(_wrapped_line(line, width) for line in text.splitlines(keepends=True))


def _wrapped_line(line: str, width: int) -> str:
    if visible_columns(line.rstrip("\n")) <= width:
        return line
    lines, used = [""], 0
    for word in line.rstrip("\n").split(" "):
        size = visible_columns(word)
        if used and used + 1 + size > width:
            lines.append(word)
            used = size
        else:
            lines[-1] += f" {word}" if used else word
            used += size + (1 if used else 0)
    return "\n".join(lines) + line[len(line.rstrip("\n")) :]


def visible_columns(text: str) -> int:
    """Return the number of columns of a text with colors."""
    return columns(plain(text))


def columns(text: str) -> int:
    """Return the number of terminal columns: wide East Asian characters and emoji take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(character) for character in text)


def _columns_of(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def short_path(path: str) -> str:
    """Return a path with the home directory as `~`."""
    home = str(Path.home())
    inside = path == home or path.startswith(home.rstrip("/\\") + ("\\" if "\\" in home else "/"))
    return "~" + path[len(home) :] if inside else path


def usage_line(task: Task, style: Style) -> str:
    """Turns, tokens, money and time of a task in one line."""
    return style.join(*number_format.task_totals(task))


def time_ago(seconds: float) -> str:
    """Return the elapsed time, in the largest unit only."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return tr("{seconds:.0f} {unit} ago").format(seconds=seconds / size, unit=unit)
    return tr("{value:.0f} s ago").format(value=max(0.0, seconds))


def short_id(identifier: str) -> str:
    """Return the end of an id, since ids created at the same time begin alike, with the number of one of several."""
    counted = _COUNTED.search(identifier)
    return identifier[-8 - (len(counted[0]) if counted else 0) :]


def side_by_side(texts: Sequence[tuple[str, str, str]], width: int, style: Style) -> list[str]:
    """Columns, each with its heading, its text and the line below it."""
    room = (width - len(_GAP) * (len(texts) - 1)) // max(1, len(texts))
    if room < _NARROWEST:
        return [line for text in texts for line in (*_column(text, width, style), "")]
    columns_of = [_column(text, room, style) for text in texts]
    return [_row(cells, room) for cells in zip_longest(*columns_of, fillvalue="")]


def _column(text: tuple[str, str, str], width: int, style: Style) -> list[str]:
    heading, content, below = text
    body = [cut(line, width) for line in wrapped(plain(content).strip(), width).splitlines()]
    return [style.bold(cut(plain(heading), width)), *body, *(style.dim(cut(part, width)) for part in (below,) if part)]


def _row(cells: Sequence[str], room: int) -> str:
    return _GAP.join(cell + " " * (room - columns(plain(cell))) for cell in cells).rstrip()
