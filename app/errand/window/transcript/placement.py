"""Places the views of the visible rows and keeps the scroll bar in step.

While idle it draws formulas and measures rows nearby.
"""

from collections.abc import Iterable

from PySide6.QtCore import QObject, QPoint, QTimer, Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QAbstractScrollArea

from errand.client.conversation.rows import Row
from errand.window.rows.base import RowView
from errand.window.rows.row_source import RowSource
from errand.window.rows.text_view import TextView, is_any_pending
from errand.window.theme.theme import Theme
from errand.window.transcript.highlights import text_view_at
from errand.window.transcript.layout import ScrollAnchor
from errand.window.transcript.recycler import RowViewRecycler
from errand.window.transcript.scrolling import ScrollBarSync, line_height, next_to_measure, overscan

# Between scrolling and drawing formulas, and between looks at whether that is possible.
_REST_MS = 100
_LOOK_MS = 20


class RowPlacement(QObject):
    """`shown` are the rows that `place` found visible; `bar` reports moves by a person.

    `filled`: a formula was drawn, so that the rows have to be placed again.
    """

    filled = Signal()

    def __init__(
        self, area: QAbstractScrollArea, rows: RowSource, recycler: RowViewRecycler, anchor: ScrollAnchor, theme: Theme
    ) -> None:
        super().__init__(area)
        self.shown = range(0)
        self.bar = ScrollBarSync(area.verticalScrollBar())
        self._area = area
        self._rows = rows
        self._recycler = recycler
        self._anchor = anchor
        self._theme = theme
        self._margin = theme.tokens.space_far
        self._idle_timer = QTimer(self, singleShot=True, interval=0)
        self._idle_timer.timeout.connect(self._on_idle)
        self._rest_timer = QTimer(self, singleShot=True)
        self._rest_timer.timeout.connect(self._idle_timer.start)

    def place(self) -> None:
        """Measure and place the visible rows; the others nearby follow when nothing else is to be done."""
        viewport = self._area.viewport()
        self._recycler.set_width(max(1, min(self._theme.tokens.column, viewport.width() - 2 * self._margin)))
        self.shown = self._anchor.resolve(self._recycler.heights, viewport.height(), self._recycler.measure)
        self._place_views()
        self._update_scroll_bar()
        self._idle_timer.start()

    def postpone_idle(self) -> None:
        """The rows near the view change: measure none before they are placed again."""
        self._idle_timer.stop()

    def postpone_formulas(self) -> None:
        """The view is being scrolled, which must not wait for a formula."""
        self._rest_timer.start(_REST_MS)

    def _place_views(self) -> None:
        overscanned = overscan(self.shown, self._rows.count())
        for view in self._recycler.release_except(overscanned):
            view.move(view.x(), -view.height() - self._area.viewport().height())
        # The middle of the area, so that the scroll bar does not shift the rows.
        left = (self._area.width() - self._recycler.width) // 2
        top = self._anchor.y(self._recycler.heights)
        y = self._margin + self._recycler.heights.offset_of(self.shown.start) - top
        for index in self.shown:
            view = self._recycler.view(index)
            height, gap = self._recycler.measure(index), self._recycler.gap(index)
            view.setGeometry(left, y + gap, self._recycler.width, height - gap)
            view.show()
            y += height
        for index, view in self._recycler.views(overscanned):
            if index not in self.shown:
                view.hide()

    def _update_scroll_bar(self) -> None:
        y = None if self._anchor.is_end else self._anchor.y(self._recycler.heights)
        total = self._recycler.heights.total + 2 * self._margin
        self.bar.update(y, height=self._area.viewport().height(), total=total, line=line_height(self._theme))

    def _on_idle(self) -> None:
        """Draw one formula or measure one row near the view in advance, for smooth scrolling."""
        if self._fill_in(self.shown):
            return
        nearby = next_to_measure(self.shown, self._rows.count())
        for index in nearby:
            if self._recycler.prepare(index):
                self._idle_timer.start()
                return
        self._update_scroll_bar()
        self._fill_in(nearby)

    def _fill_in(self, rows: Iterable[int]) -> bool:
        """Draw the next formula of these rows, if there is one; False if all are drawn."""
        if not is_any_pending():
            return False
        pending = next(((index, view) for index, view in self._recycler.views(rows) if view.is_pending), None)
        if pending is None or self._rest_timer.isActive():
            return False
        index, view = pending
        top = self._top_text(index, view)
        if not view.fill_in():
            self._rest_timer.start(_LOOK_MS)
            return False
        self._recycler.heights.forget(index)
        height = self._recycler.measure(index) - self._recycler.gap(index)
        if top is not None:
            view.resize(view.width(), height)
            self._anchor.offset += top.y(view) - top.before
        self.filled.emit()
        return True

    def _top_text(self, index: int, view: RowView[Row]) -> "_TextPlace | None":
        """Return the text at the top of the transcript, which is to stay there; None if it is not in this row."""
        y = self._anchor.offset - self._recycler.gap(index)
        if self._anchor.is_end or index != self._anchor.index or y <= 0:
            return None
        part = text_view_at(view, QPoint(0, y))
        return _TextPlace(part[1], view, y) if part is not None else None


class _TextPlace:
    """A line of text in a row view; `before` is its y coordinate now."""

    def __init__(self, text: TextView, view: RowView[Row], y: int) -> None:
        self._text = text
        self._cursor: QTextCursor = text.cursorForPosition(text.viewport().mapFrom(view, QPoint(0, y)))
        self.before = self.y(view)

    def y(self, view: RowView[Row]) -> int:
        return self._text.viewport().mapTo(view, self._text.cursorRect(self._cursor).topLeft()).y()
