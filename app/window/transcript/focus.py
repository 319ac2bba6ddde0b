"""Tab in the transcript: from block to block as they stand, for Qt knows only the order in which they were made."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.window.blocks.block import Block


def focus_next(view: QWidget, blocks: Sequence[Block], *, forward: bool, reveal: Callable[[QWidget], None]) -> bool:
    """Move the keyboard to the next control of the blocks in view, or out of `view` after the last one."""
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    stops = [view, *(widget for block in blocks for widget in _stops(block))]
    focused = view.window().focusWidget()
    place = next((number for number, widget in enumerate(stops) if widget is focused), -1 if forward else len(stops))
    place += 1 if forward else -1
    if 0 <= place < len(stops):
        stops[place].setFocus(reason)
        if stops[place] is not view:
            reveal(stops[place])
        return True
    return _leave(view, forward, reason)


def _stops(block: Block) -> list[QWidget]:
    """The controls of a block that Tab reaches, from top to bottom and left to right."""
    found = [widget for widget in block.findChildren(QWidget) if _takes_tab(widget)]

    def place(widget: QWidget) -> tuple[int, int]:
        corner = widget.mapTo(block, widget.rect().topLeft())
        return corner.y(), corner.x()

    return sorted(found, key=place)


def _leave(view: QWidget, forward: bool, reason: Qt.FocusReason) -> bool:
    widget: QWidget | None = view
    while True:
        widget = widget.nextInFocusChain() if forward else widget.previousInFocusChain()
        if widget is None or widget is view:
            return False
        if not view.isAncestorOf(widget) and _takes_tab(widget) and widget.window() is view.window():
            widget.setFocus(reason)
            return True


def _takes_tab(widget: QWidget) -> bool:
    takes = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
    return takes and widget.isEnabled() and widget.isVisible() and widget.focusProxy() is None
