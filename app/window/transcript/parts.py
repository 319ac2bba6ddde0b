"""The texts of a block, by number: what a spot of the selection and a hit of the search count in."""

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget

from app.window.blocks.block import Block
from app.window.blocks.text_view import TextView


def parts(block: Block) -> list[TextView]:
    """Those that are open, from top to bottom; a block of lines and pictures alone has none."""
    return [view for view in block.findChildren(TextView) if view.isVisibleTo(block)]


def part_at(block: Block, point: QPoint) -> tuple[int, TextView] | None:
    """The text at a point of the block, or the nearest one above or below it."""
    found = list(enumerate(parts(block)))
    return min(found, key=lambda entry: _distance(_top(entry[1], block), entry[1].height(), point.y()), default=None)


def position_at(view: TextView, block: Block, point: QPoint) -> int:
    """The character of a text nearest to a point of the block."""
    inside = view.viewport().mapFrom(block, point)
    if inside.y() < 0:
        return 0
    if inside.y() >= view.viewport().height():
        return view.document().characterCount() - 1
    return view.cursorForPosition(inside).position()


def _top(view: QWidget, block: Block) -> int:
    return view.mapTo(block, QPoint(0, 0)).y()


def _distance(top: int, height: int, y: int) -> int:
    return max(top - y, y - top - height, 0)
