"""The existing row views by row number: created, pooled, reused, measured.

Also the space between rows, and the Tab order.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication, QWidget

from errand.client.conversation.rows import Row
from errand.window.rows.base import RowActions, RowKind, RowView, spacing_above
from errand.window.rows.row_source import RowSource
from errand.window.theme.theme import Theme
from errand.window.transcript.layout import RowHeights
from errand.window.widgets.accessibility import is_tab_stop, step_focus
from errand.window.widgets.input.hover import end_hover

_MAX_OF_A_TYPE = 12


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

    def put_back(self, view: RowView[Row]) -> None:
        focused = view.window().focusWidget()
        if focused is not None and view.isAncestorOf(focused):  # pyright: ignore[reportUnnecessaryComparison] -- PySide6's stubs leave out that there may be none
            self._parent.setFocus()  # otherwise Qt would move the focus to an arbitrary widget
        view.hide()
        end_hover(view)
        free = self._free.setdefault(type(view), [])
        if len(free) < _MAX_OF_A_TYPE:
            free.append(view)
        else:
            view.deleteLater()

    def clear(self) -> None:
        for free in self._free.values():
            for view in free:
                view.deleteLater()
        self._free.clear()


class RowViewRecycler(QObject):
    """Row views by index. A row's height includes the gap above it.

    `resized(index)`: a view changed its height by itself.

    `part_opened` and `menu_opening` forward the signals of the views.
    """

    resized = Signal(int)
    part_opened = Signal(QWidget)
    menu_opening = Signal(object)

    def __init__(self, rows: RowSource, theme: Theme, actions: RowActions, parent: QWidget) -> None:
        super().__init__(parent)
        self.heights = RowHeights()
        self.width = theme.tokens.column
        self._rows = rows
        self._theme = theme
        self._pool = RowViewPool(theme, actions, parent)
        self._views: dict[int, RowView[Row]] = {}
        self._stale: set[int] = set()  # rows that changed since their view was updated
        self.open_keys: dict[str, None] = {}  # rows whose cards the user expanded, the last one at the end
        self._connected: set[RowView[Row]] = set()

    def reset(self) -> None:
        """All rows are new."""
        self._release_all()
        self.heights.reset(self._estimates(0, self._rows.count()))

    def restyle(self) -> None:
        """Colours or fonts changed: recreate and measure all views."""
        self.delete_views()
        self.heights.forget_all()

    def delete_views(self) -> None:
        """Delete all views, also those kept for reuse; the measured heights stay."""
        self._release_all()
        self._pool.clear()
        self._connected.clear()

    def set_width(self, width: int) -> None:
        if width != self.width:
            self.width = width
            self.heights.forget_all()

    def inserted(self, first: int, count: int) -> None:
        self._shift_indexes(first, count)
        self.heights.insert(first, self._estimates(first, count))
        self._gap_changed(first + count)

    def removed(self, first: int, count: int) -> None:
        for index in range(first, first + count):
            self._release(index)
        self._shift_indexes(first, -count)
        self.heights.remove(first, count)
        self._gap_changed(first)

    def changed(self, index: int) -> None:
        """The row was replaced, possibly by another kind; its view is updated when it is next requested."""
        if index in self._views:
            self._stale.add(index)
        self.heights.forget(index)

    def measure(self, index: int) -> int:
        """Return the actual height of a row, including the gap."""
        if not self.heights.is_measured(index):
            self.heights.measure(index, self.gap(index) + self.view(index).height_for(self.width))
        return self.heights[index]

    def gap(self, index: int) -> int:
        kind_of, row = _kinds(), self._rows.row(index)
        above = self._rows.row(index - 1) if index else None
        spacing = kind_of(above).spacing(above) if above is not None else None
        return spacing_above(spacing, kind_of(row).spacing(row), self._theme.tokens)

    def view(self, index: int) -> RowView[Row]:
        """Return the up-to-date view of a row, created if necessary."""
        view = self._views.get(index)
        if view is not None and index not in self._stale:
            return view
        row = self._rows.row(index)
        kind = _kinds()(row)
        self._stale.discard(index)
        if view is None or type(view) is not kind.view:
            self._release(index)
            view = self._pool.take(kind.view)
            self._connect(view)
            view.resize(self.width, view.height())  # so that texts are laid out once, at the final width
            view.set_open(row.key in self.open_keys)
        view.set_row(row)
        self._views[index] = view  # after its first row, so that `resized` then does not leave the end
        return view

    def is_open(self, index: int) -> bool:
        """Return True if the user expanded this row's card."""
        return self._rows.row(index).key in self.open_keys

    def open(self, index: int) -> None:
        """Expand this row's card, like a click on it."""
        row = self._rows.row(index)
        if row.key not in self.open_keys:
            self.open_keys[row.key] = None
            self._show_open(index, is_open=True)

    def close_last_opened(self, rows: range) -> bool:
        """Collapse that of these rows which was expanded last; False if none is."""
        indexes = {self._rows.row(index).key: index for index in rows}
        key = next((key for key in reversed(self.open_keys) if key in indexes), None)
        if key is None:
            return False
        del self.open_keys[key]
        self._show_open(indexes[key], is_open=False)
        self.resized.emit(indexes[key])
        return True

    def close_part(self, rows: range) -> bool:
        """Close an open part of a card that waits for a person in these rows; False if there is none."""
        return any(view.close_part() for _, view in self.views(rows))

    def _show_open(self, index: int, *, is_open: bool) -> None:
        view = self.view(index)
        view.set_open(is_open)
        view.set_row(self._rows.row(index))
        self.heights.forget(index)

    def prepare(self, index: int) -> bool:
        """Create and measure the view of an invisible row; False if it is ready, or changed while invisible."""
        if index in self._stale or (index in self._views and self.heights.is_measured(index)):
            return False
        self.view(index)
        self.measure(index)
        return True

    def all_views(self) -> Iterator[tuple[int, RowView[Row]]]:
        """Yield all existing views, visible or prepared nearby."""
        yield from self._views.items()

    def views(self, rows: Iterable[int]) -> Iterator[tuple[int, RowView[Row]]]:
        """Yield the existing views of these rows, from top to bottom."""
        for index in rows:
            if index in self._views:
                yield index, self._views[index]

    def release_except(self, rows: range) -> list[RowView[Row]]:
        """Release the views of all other rows, except one with the focus, which is returned."""
        focused: list[RowView[Row]] = []
        for index in [index for index in self._views if index not in rows]:
            if _has_focus(self._views[index]):
                focused.append(self._views[index])
            else:
                self._release(index)
        return focused

    def _connect(self, view: RowView[Row]) -> None:
        if view not in self._connected:
            self._connected.add(view)
            view.destroyed.connect(lambda: self._connected.discard(view))
            view.resized.connect(partial(self._on_resized, view))
            view.part_opened.connect(self.part_opened)
            view.opened.connect(partial(self._on_opened, view))
            view.menu_opening.connect(self.menu_opening)

    def _on_resized(self, view: RowView[Row]) -> None:
        index = self._index_of(view)
        if index is not None:
            self.heights.forget(index)
            self.resized.emit(index)

    def _on_opened(self, view: RowView[Row], is_open: bool) -> None:
        index = self._index_of(view)
        if index is not None:
            key = self._rows.row(index).key
            self.open_keys.pop(key, None)
            if is_open:
                self.open_keys[key] = None

    def _index_of(self, view: RowView[Row]) -> int | None:
        return next((index for index, each in self._views.items() if each is view), None)

    def _gap_changed(self, index: int) -> None:
        """The row above changed, and with it the gap."""
        if index < len(self.heights):
            self.heights.forget(index)

    def _shift_indexes(self, first: int, by: int) -> None:
        self._views = {index + by if index >= first else index: view for index, view in self._views.items()}
        self._stale = {index + by if index >= first else index for index in self._stale}

    def _release(self, index: int) -> None:
        view = self._views.pop(index, None)
        self._stale.discard(index)
        if view is not None:
            self._pool.put_back(view)

    def _release_all(self) -> None:
        for index in list(self._views):
            self._release(index)

    def _estimates(self, first: int, count: int) -> list[int]:
        if not count:
            return []  # an empty transcript loads no kinds
        kind_of, width, tokens = _kinds(), self.width, self._theme.tokens
        rows: list[Row] = [self._rows.row(index) for index in range(first, first + count)]
        return [kind_of(row).estimate(row, width, tokens) for row in rows]


def _has_focus(view: RowView[Row]) -> bool:
    focused = QApplication.focusWidget()
    return focused is not None and (focused is view or view.isAncestorOf(focused))


@cache
def _kinds() -> Callable[[Row], RowKind[Row]]:
    from errand.window.rows.registry import kind_of  # imports all row kinds: 40 ms that the start does not need

    return kind_of


def focus_next(
    view: QWidget, row_views: Sequence[RowView[Row]], *, forward: bool, reveal: Callable[[QWidget], None]
) -> bool:
    """Focus the next control of the visible row views, or leave `view` after the last one."""
    stops = [view, *(widget for row_view in row_views for widget in _tab_stops(row_view))]
    focused = view.window().focusWidget()
    number = next((number for number, widget in enumerate(stops) if widget is focused), -1 if forward else len(stops))
    number += 1 if forward else -1
    if 0 <= number < len(stops):
        stops[number].setFocus(Qt.FocusReason.TabFocusReason)
        if stops[number] is not view:
            reveal(stops[number])
        return True
    return step_focus(view.window(), view, forward=forward)


def focus_last(views: Sequence[RowView[Row]], reveal: Callable[[QWidget], None]) -> None:
    """Focus the last control of the visible row views, if there is one."""
    stops = [widget for view in views for widget in _tab_stops(view)]
    if stops:
        stops[-1].setFocus(Qt.FocusReason.TabFocusReason)
        reveal(stops[-1])


def _tab_stops(view: RowView[Row]) -> list[QWidget]:
    """Return the tab stops of a row view, from top to bottom and left to right."""
    tab_stops = [widget for widget in view.findChildren(QWidget) if is_tab_stop(widget)]

    def place(widget: QWidget) -> tuple[int, int]:
        corner = widget.mapTo(view, widget.rect().topLeft())
        return corner.y(), corner.x()

    return sorted(tab_stops, key=place)


def trim_memory() -> None:
    """Give freed memory back to the system: glibc keeps most of it for later."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # not glibc
            ctypes.CDLL(None).malloc_trim(0)
