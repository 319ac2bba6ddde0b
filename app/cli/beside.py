"""Texts to be compared: side by side where the terminal is wide enough, else one after the other. Pure."""

from collections.abc import Sequence
from itertools import zip_longest

from app.cli.plain import columns, cut, plain, wrapped
from app.cli.style import Style

_NARROWEST = 48
_GAP = "  "


def beside(texts: Sequence[tuple[str, str, str]], width: int, style: Style) -> list[str]:
    """Of each its heading, its text and the line below it."""
    room = (width - len(_GAP) * (len(texts) - 1)) // max(1, len(texts))
    if room < _NARROWEST:
        return [line for text in texts for line in (*_column(text, width, style), "")]
    columns_of = [_column(text, room, style) for text in texts]
    return [_row(cells, room) for cells in zip_longest(*columns_of, fillvalue="")]


def _column(text: tuple[str, str, str], width: int, style: Style) -> list[str]:
    heading, said, below = text
    body = [cut(line, width) for line in wrapped(plain(said).strip(), width).splitlines()]
    return [style.bold(cut(plain(heading), width)), *body, *(style.dim(cut(part, width)) for part in (below,) if part)]


def _row(cells: Sequence[str], room: int) -> str:
    return _GAP.join(cell + " " * (room - columns(plain(cell))) for cell in cells).rstrip()
