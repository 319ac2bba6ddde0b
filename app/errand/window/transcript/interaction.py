"""Mouse selection, copying and search hits, tied to the row views."""

import re
from collections.abc import Callable, Iterator, Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QMouseEvent, QTextCursor
from PySide6.QtWidgets import QMenu, QWidget

from errand.client.conversation.rows import Row
from errand.text.translation import tr
from errand.window.rows.base import RowActions, RowView
from errand.window.rows.row_source import RowSource
from errand.window.transcript.highlights import (
    SearchPattern,
    current_highlight,
    find_in,
    highlight_row,
    is_plain,
    position_at,
    text_view_at,
)
from errand.window.transcript.recycler import RowViewRecycler
from errand.window.transcript.selection import DragSelection, Selection, SelectionPoint

_LEFT = Qt.MouseButton.LeftButton
_SHIFT = Qt.KeyboardModifier.ShiftModifier


class SelectionController(QObject):
    """Handles mouse events in viewport coordinates.

    Emits `scrolled(pixels)` to scroll while dragging at an edge, and `clicked` for a click that selected nothing.
    """

    scrolled = Signal(int)
    clicked = Signal()

    def __init__(self, rows: RowSource, recycler: RowViewRecycler, actions: RowActions, viewport: QWidget) -> None:
        super().__init__(viewport)
        self._rows = rows
        self._recycler = recycler
        self._actions = actions
        self._viewport = viewport
        self._shown = range(0)
        self._has_highlights = False
        self._search: SearchPattern | None = None
        self._plain: list[RowView[Row]] = []
        self._selection = Selection(rows)
        self.span = self._selection.span
        self._drag = DragSelection(self._selection, self._point_at, viewport)
        self._drag.changed.connect(self._on_changed)
        self._drag.scrolled.connect(self.scrolled)
        recycler.menu_opening.connect(self._on_menu_opening)

    def show_highlights(self, shown: range) -> None:
        """Paint the marks of all existing row views."""
        self._shown = shown
        self._plain.clear()
        span = self._selection.span()
        if span is None and self._search is None and not self._has_highlights:
            return
        self._has_highlights = span is not None or self._search is not None
        for index, row_view in self._recycler.all_views():
            key = self._rows.row(index).key
            highlight_row(row_view, index, key, span, self._search)
            if index in shown and is_plain(row_view, index, key, span, self._search):
                self._plain.append(row_view)
        self._viewport.update()

    def set_search(self, search: SearchPattern | None) -> None:
        """Mark the hits of a search in all rows; None removes the marks."""
        self._search = search
        self._on_changed()

    def selected_card_rects(self) -> Iterator[QRect]:
        """Rectangles of selected or current rows without text to mark."""
        return (row_view.geometry() for row_view in self._plain)

    def handle_mouse(self, event: QMouseEvent) -> bool:
        """Select with the left button; False if the event is not handled."""
        point, is_left = event.position().toPoint(), event.button() == _LEFT
        match event.type():
            case QEvent.Type.MouseButtonPress if is_left:
                self._press(event, point)
            case QEvent.Type.MouseMove if event.buttons() & _LEFT:
                self._drag.move(point)
            case QEvent.Type.MouseButtonRelease if is_left:
                self._drag.release()
                if self._selection.span() is None:
                    self.clicked.emit()
            case QEvent.Type.MouseButtonDblClick if is_left:
                self._drag.on_double_click(event.timestamp())
                self._drag.select(self._unit_at(point, QTextCursor.SelectionType.WordUnderCursor))
            case _:
                return False
        return True

    def _press(self, event: QMouseEvent, point: QPoint) -> None:
        if self._search is not None and self._search.is_passing:
            self._search = None
        if self._drag.is_triple_click(event.timestamp()):
            self._drag.select(self._unit_at(point, QTextCursor.SelectionType.BlockUnderCursor))
        else:
            self._drag.press(point, extends=bool(event.modifiers() & _SHIFT))

    def copy(self) -> None:
        """Copy the selection, if any, as Markdown."""
        self._copy(is_plain_text=False)

    def select_all(self) -> None:
        self._selection.select_all()
        self._on_changed()

    def clear(self) -> None:
        self._selection.clear()
        self._on_changed()

    def _copy(self, *, is_plain_text: bool) -> None:
        from errand.window.transcript.copying import (
            SelectionCopy,  # imports all row views, which the start does not need
        )

        span = self._selection.span()
        if span is not None:
            copying = SelectionCopy(self._rows, self._recycler)
            self._actions.copy(copying.plain(span) if is_plain_text else copying.text(span))

    def _point_at(self, point: QPoint) -> SelectionPoint | None:
        pointed_at = self._view_at(point)
        if pointed_at is None:
            return None
        index, row_view = pointed_at
        inside = row_view.mapFrom(self._viewport, point)
        part = text_view_at(row_view, inside)
        key = self._rows.row(index).key
        return (
            SelectionPoint(key, 0, 0)
            if part is None
            else SelectionPoint(key, part[0], position_at(part[1], row_view, inside))
        )

    def _view_at(self, point: QPoint) -> tuple[int, RowView[Row]] | None:
        """Return the row view at a point; a gap belongs to the row below it, beyond the edges the nearest row
        counts.
        """
        nearest: tuple[int, RowView[Row]] | None = None
        for index, row_view in self._recycler.views(self._shown):
            nearest = index, row_view
            if point.y() < row_view.geometry().bottom():
                break
        return nearest

    def _unit_at(self, point: QPoint, unit: QTextCursor.SelectionType) -> tuple[SelectionPoint, SelectionPoint] | None:
        """Return the word or paragraph at a point, if there is text."""
        pointed_at = self._view_at(point)
        part = (
            text_view_at(pointed_at[1], pointed_at[1].mapFrom(self._viewport, point))
            if pointed_at is not None
            else None
        )
        if pointed_at is None or part is None:
            return None
        number, view = part
        cursor = view.cursorForPosition(view.viewport().mapFrom(self._viewport, point))
        cursor.select(unit)
        key, start = self._rows.row(pointed_at[0]).key, cursor.selectionStart()
        if cursor.selectedText().startswith("\u2029"):
            start += 1  # the selection includes the preceding paragraph separator
        return SelectionPoint(key, number, start), SelectionPoint(key, number, cursor.selectionEnd())

    def _on_changed(self) -> None:
        self.show_highlights(self._shown)

    def _on_menu_opening(self, menu: QMenu) -> None:
        first = menu.actions()[0] if menu.actions() else None
        if self._selection.span() is None:
            return
        for title, is_plain_text in ((tr("Copy"), False), (tr("Copy as plain text"), True)):
            entry = menu.addAction(title)
            entry.triggered.connect(
                lambda _=False, is_plain_text=is_plain_text: self._copy(is_plain_text=is_plain_text)
            )
            if first is not None:
                menu.removeAction(entry)
                menu.insertAction(first, entry)


class SearchHighlights:
    """Shows search hits.

    `show_row` scrolls to a row, `scroll` moves by pixels; `margin` is the minimum distance from an edge.
    """

    def __init__(
        self,
        recycler: RowViewRecycler,
        reader: SelectionController,
        viewport: QWidget,
        *,
        margin: int,
        show_row: Callable[[int], None],
        scroll: Callable[[int], None],
    ) -> None:
        self._recycler = recycler
        self._reader = reader
        self._viewport = viewport
        self._margin = margin
        self._show_row = show_row
        self._scroll = scroll

    def highlight_words(self, words: Sequence[str]) -> None:
        """Mark these words, ignoring case, until the next search or click."""
        patterns = [re.escape(word) for word in sorted(words, key=len, reverse=True) if word.strip()]
        self._reader.set_search(SearchPattern(re.compile("|".join(patterns), re.IGNORECASE)) if patterns else None)

    def show(self, index: int, search: SearchPattern) -> None:
        """Scroll to a hit of this row, expand the card that hides it, and mark all hits."""
        if search.counts.get(search.key, 0) > len(find_in(self._recycler.view(index), search.pattern)):
            self._recycler.open(index)
        self._reader.set_search(search)
        self._show_row(index)
        self._reveal(index, search)

    def _reveal(self, index: int, search: SearchPattern) -> None:
        """Scroll only if the hit is not visible or too close to an edge."""
        row_view = self._recycler.view(index)
        hit = current_highlight(find_in(row_view, search.pattern), search.key, search)
        rect = hit.view.reveal(hit.start, hit.end) if hit is not None else row_view.rect()
        near = hit.view.viewport() if hit is not None else row_view
        top = near.mapTo(self._viewport, rect.topLeft()).y()
        height = self._viewport.height()
        if top < self._margin or top + rect.height() > height - self._margin:
            self._scroll(top - height // 3)
