"""Places the views of the visible rows, keeps the scroll bar in step, and measures rows nearby while idle."""

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QAbstractScrollArea

from errand.window.rows.row import RowSource
from errand.window.theme.theme import Theme
from errand.window.transcript.layout import ScrollAnchor
from errand.window.transcript.recycler import RowViewRecycler
from errand.window.transcript.scrolling import ScrollBarSync, line_height, next_to_measure, overscan


class RowPlacement(QObject):
    """`shown` are the rows that `place` found visible; `bar` reports moves by a person."""

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
        """Create and measure one row near the view in advance, for smooth scrolling."""
        for index in next_to_measure(self.shown, self._rows.count()):
            if self._recycler.prepare(index):
                self._idle_timer.start()
                return
        self._update_scroll_bar()
