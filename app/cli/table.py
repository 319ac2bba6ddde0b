"""A Markdown table as aligned columns; as it was written where it does not fit. Pure."""

import re

from app.cli.inline import styled, without_marks
from app.cli.plain import columns, plain
from app.cli.style import Style

_GAP = "  "


def table_lines(rows: list[str], width: int, style: Style) -> list[str]:
    cells = [_cells(row) for row in rows]
    if len(cells) < 2 or not all(re.fullmatch(r":?-+:?", cell) for cell in cells[1]):
        return rows
    body = [cells[0], *cells[2:]]
    count = max(len(row) for row in body)
    sizes = [max(_size(row[place]) if place < len(row) else 0 for row in body) for place in range(count)]
    if sum(sizes) + len(_GAP) * (count - 1) > width:
        return rows
    head = [f"**{without_marks(cell)}**" if cell else "" for cell in body[0]]
    lines = [_line(row, sizes, style) for row in (head, *body[1:])]
    return [lines[0], style.dim(_GAP.join("-" * size for size in sizes)), *lines[1:]]


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _line(row: list[str], sizes: list[int], style: Style) -> str:
    cells = zip(row, sizes, strict=False)
    return _GAP.join(styled(cell, style) + _room(cell, size) for cell, size in cells).rstrip()


def _room(cell: str, size: int) -> str:
    return " " * (size - _size(cell))


def _size(cell: str) -> int:
    return columns(plain(without_marks(cell)))
