"""The existing row views by row number: created, pooled, reused, measured.

Also the space between rows, and the Tab order.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication, QWidget

from app.window.rows.base import RowActions, RowKind, RowView, spacing_above
from app.window.rows.row import Row, RowSource
from app.window.theme.theme import Theme
from app.window.transcript.layout import RowHeights
from app.window.widgets.accessibility import step_focus, takes_tab

_MOST_OF_A_TYPE = 12


class RowViewPool:
    """A pool of unused row views by type."""

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget) -> None:
        self._theme = theme
        self._actions = actions
        self._parent = parent
        self._free: dict[type[RowView[Row]], list[RowView[Row]]] = {}

    def take(self, kind: type[RowView[Row]]) -> RowView[Row]:
        free = self._free.get(kind)
        return free.pop() if free else kind(self._theme, self._actions, self._parent)

    def give(self, block: RowView[Row]) -> None:
        focused = block.window().focusWidget()
        if focused is not None and block.isAncestorOf(focused):  # pyright: ignore[reportUnnecessaryComparison] -- PySide6's stubs leave out that there may be none
            self._parent.setFocus()  # otherwise Qt would move the focus to an arbitrary widget
        block.hide()
        free = self._free.setdefault(type(block), [])
        if len(free) < _MOST_OF_A_TYPE:
            free.append(block)
        else:
            block.deleteLater()

    def clear(self) -> None:
        for free in self._free.values():
            for block in free:
                block.deleteLater()
        self._free.clear()


class RowViewRecycler(QObject):
    """Row views by index. A row's height includes the gap above it.

    `resized(index)`: a view changed its height by itself.

    `menu_opening` forwards the signal of the views.
    """

    resized = Signal(int)
    menu_opening = Signal(object)

    def __init__(self, rows: RowSource, theme: Theme, actions: RowActions, parent: QWidget) -> None:
        super().__init__(parent)
        self.heights = RowHeights()
        self.width = theme.tokens.column
        self._rows = rows
        self._theme = theme
        self._pool = RowViewPool(theme, actions, parent)
        self._blocks: dict[int, RowView[Row]] = {}
        self._stale: set[int] = set()  # rows that changed since their view was updated
        self._open: set[str] = set()
        self._wired: set[RowView[Row]] = set()

    def reset(self) -> None:
        """All rows are new."""
        self._drop_all()
        self.heights.reset(self._estimates(0, self._rows.count()))

    def restyle(self) -> None:
        """Colours or fonts changed: recreate and measure all views."""
        self._drop_all()
        self._pool.clear()
        self._wired.clear()
        self.heights.forget_all()

    def set_width(self, width: int) -> None:
        if width != self.width:
            self.width = width
            self.heights.forget_all()

    def inserted(self, first: int, count: int) -> None:
        self._move_from(first, count)
        self.heights.insert(first, self._estimates(first, count))
        self._gap_changed(first + count)

    def removed(self, first: int, count: int) -> None:
        for index in range(first, first + count):
            self._drop(index)
        self._move_from(first, -count)
        self.heights.remove(first, count)
        self._gap_changed(first)

    def changed(self, index: int) -> None:
        """The row was replaced, possibly by another kind; its view is updated when it is next requested."""
        if index in self._blocks:
            self._stale.add(index)
        self.heights.forget(index)

    def measure(self, index: int) -> int:
        """The actual height of a row, including the gap."""
        if not self.heights.is_measured(index):
            self.heights.measure(index, self.gap(index) + self.block(index).height_for(self.width))
        return self.heights[index]

    def gap(self, index: int) -> int:
        kind_of, row = _kinds(), self._rows.row(index)
        above = self._rows.row(index - 1) if index else None
        spacing = kind_of(above).spacing(above) if above is not None else None
        return spacing_above(spacing, kind_of(row).spacing(row), self._theme.tokens)

    def block(self, index: int) -> RowView[Row]:
        """The up-to-date view of a row, created if necessary."""
        block = self._blocks.get(index)
        if block is not None and index not in self._stale:
            return block
        row = self._rows.row(index)
        kind = _kinds()(row)
        self._stale.discard(index)
        if block is None or type(block) is not kind.view:
            self._drop(index)
            block = self._pool.take(kind.view)
            self._wire(block)
            block.resize(self.width, block.height())  # so that texts are laid out once, at the final width
            block.set_open(row.key in self._open)
        block.set_row(row)
        self._blocks[index] = block  # after its first row, so that `resized` then does not leave the end
        return block

    def is_open(self, index: int) -> bool:
        """True if the user expanded this row's card."""
        return self._rows.row(index).key in self._open

    def open(self, index: int) -> None:
        """Expand this row's card, like a click on it."""
        row = self._rows.row(index)
        if row.key not in self._open:
            self._open.add(row.key)
            block = self.block(index)
            block.set_open(True)
            block.set_row(row)
            self.heights.forget(index)

    def prepare(self, index: int) -> bool:
        """Create and measure the view of an invisible row; False if it is ready, or changed while invisible."""
        if index in self._stale or (index in self._blocks and self.heights.is_measured(index)):
            return False
        self.block(index)
        self.measure(index)
        return True

    def all_blocks(self) -> Iterator[tuple[int, RowView[Row]]]:
        """All existing views, visible or prepared nearby."""
        yield from self._blocks.items()

    def blocks(self, rows: range) -> Iterator[tuple[int, RowView[Row]]]:
        """The existing views of these rows, from top to bottom."""
        for index in rows:
            if index in self._blocks:
                yield index, self._blocks[index]

    def keep(self, rows: range) -> list[RowView[Row]]:
        """Release the views of all other rows, except one with the focus, which is returned."""
        kept: list[RowView[Row]] = []
        for index in [index for index in self._blocks if index not in rows]:
            if _has_focus(self._blocks[index]):
                kept.append(self._blocks[index])
            else:
                self._drop(index)
        return kept

    def _wire(self, block: RowView[Row]) -> None:
        if block not in self._wired:
            self._wired.add(block)
            block.destroyed.connect(lambda: self._wired.discard(block))
            block.resized.connect(partial(self._on_resized, block))
            block.opened.connect(partial(self._on_opened, block))
            block.menu_opening.connect(self.menu_opening)

    def _on_resized(self, block: RowView[Row]) -> None:
        index = self._index_of(block)
        if index is not None:
            self.heights.forget(index)
            self.resized.emit(index)

    def _on_opened(self, block: RowView[Row], is_open: bool) -> None:
        index = self._index_of(block)
        if index is not None:
            key = self._rows.row(index).key
            (self._open.add if is_open else self._open.discard)(key)

    def _index_of(self, block: RowView[Row]) -> int | None:
        return next((index for index, one in self._blocks.items() if one is block), None)

    def _gap_changed(self, index: int) -> None:
        """The row above changed, and with it the gap."""
        if index < len(self.heights):
            self.heights.forget(index)

    def _move_from(self, first: int, by: int) -> None:
        self._blocks = {index + by if index >= first else index: block for index, block in self._blocks.items()}
        self._stale = {index + by if index >= first else index for index in self._stale}

    def _drop(self, index: int) -> None:
        block = self._blocks.pop(index, None)
        self._stale.discard(index)
        if block is not None:
            self._pool.give(block)

    def _drop_all(self) -> None:
        for index in list(self._blocks):
            self._drop(index)

    def _estimates(self, first: int, count: int) -> list[int]:
        if not count:
            return []  # an empty transcript loads no kinds
        kind_of, width, tokens = _kinds(), self.width, self._theme.tokens
        rows: list[Row] = [self._rows.row(index) for index in range(first, first + count)]
        return [kind_of(row).estimate(row, width, tokens) for row in rows]


def _has_focus(block: RowView[Row]) -> bool:
    focused = QApplication.focusWidget()
    return focused is not None and (focused is block or block.isAncestorOf(focused))


@cache
def _kinds() -> Callable[[Row], RowKind[Row]]:
    from app.window.rows.registry import kind_of  # imports all row kinds: 40 ms that the start does not need

    return kind_of


def focus_next(
    view: QWidget, blocks: Sequence[RowView[Row]], *, forward: bool, reveal: Callable[[QWidget], None]
) -> bool:
    """Focus the next control of the visible row views, or leave `view` after the last one."""
    stops = [view, *(widget for block in blocks for widget in _stops(block))]
    focused = view.window().focusWidget()
    place = next((number for number, widget in enumerate(stops) if widget is focused), -1 if forward else len(stops))
    place += 1 if forward else -1
    if 0 <= place < len(stops):
        stops[place].setFocus(Qt.FocusReason.TabFocusReason)
        if stops[place] is not view:
            reveal(stops[place])
        return True
    return step_focus(view.window(), view, forward=forward)


def focus_last(blocks: Sequence[RowView[Row]], reveal: Callable[[QWidget], None]) -> None:
    """Focus the last control of the visible row views, if there is one."""
    stops = [widget for block in blocks for widget in _stops(block)]
    if stops:
        stops[-1].setFocus(Qt.FocusReason.TabFocusReason)
        reveal(stops[-1])


def _stops(block: RowView[Row]) -> list[QWidget]:
    """The tab stops of a row view, from top to bottom and left to right."""
    found = [widget for widget in block.findChildren(QWidget) if takes_tab(widget)]

    def place(widget: QWidget) -> tuple[int, int]:
        corner = widget.mapTo(block, widget.rect().topLeft())
        return corner.y(), corner.x()

    return sorted(found, key=place)
