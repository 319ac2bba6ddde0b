"""Tab in the transcript: from block to block as they stand, for Qt knows only the order in which they were made."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.window.blocks.block import Block
from app.window.focus_order import step, takes_tab


def focus_next(view: QWidget, blocks: Sequence[Block], *, forward: bool, reveal: Callable[[QWidget], None]) -> bool:
    """Move the keyboard to the next control of the blocks in view, or out of `view` after the last one."""
    stops = [view, *(widget for block in blocks for widget in _stops(block))]
    focused = view.window().focusWidget()
    place = next((number for number, widget in enumerate(stops) if widget is focused), -1 if forward else len(stops))
    place += 1 if forward else -1
    if 0 <= place < len(stops):
        stops[place].setFocus(Qt.FocusReason.TabFocusReason)
        if stops[place] is not view:
            reveal(stops[place])
        return True
    return step(view.window(), view, forward=forward)


def focus_last(blocks: Sequence[Block], reveal: Callable[[QWidget], None]) -> None:
    """Move the keyboard to the last control of the blocks in view, if there is one."""
    stops = [widget for block in blocks for widget in _stops(block)]
    if stops:
        stops[-1].setFocus(Qt.FocusReason.TabFocusReason)
        reveal(stops[-1])


def _stops(block: Block) -> list[QWidget]:
    """The controls of a block that Tab reaches, from top to bottom and left to right."""
    found = [widget for widget in block.findChildren(QWidget) if takes_tab(widget)]

    def place(widget: QWidget) -> tuple[int, int]:
        corner = widget.mapTo(block, widget.rect().topLeft())
        return corner.y(), corner.x()

    return sorted(found, key=place)
