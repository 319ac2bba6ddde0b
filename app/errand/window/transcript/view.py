"""The transcript: one column of row views, created only for visible rows."""

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QHideEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from errand.text.translation import tr
from errand.window.rows.base import RowActions
from errand.window.rows.row_source import RowSource, as_signal
from errand.window.theme.style import paint_focus_ring, paint_rounded
from errand.window.theme.theme import Theme
from errand.window.transcript.interaction import SearchHighlights, SelectionController
from errand.window.transcript.layout import ScrollAnchor
from errand.window.transcript.overlays import JumpToEndView, LoadingOlderView, OlderTrigger
from errand.window.transcript.placement import RowPlacement
from errand.window.transcript.recycler import RowViewRecycler, focus_last, focus_next, trim_memory
from errand.window.transcript.scrolling import SmoothScroll, key_scroll, line_height, wheel_scroll
from errand.window.widgets.input.hover import end_hover

_REASON = Qt.FocusReason
# A person who goes back and forth between two tabs finds them laid out; after this time a hidden one gives back memory.
_HIDDEN_MS = 10_000
# Freed memory is given back a while after rows were deleted or many older ones were loaded.
_TRIM_AFTER_MS = 1_000
_MANY_ROWS = 20
_KEY_REASONS = (_REASON.TabFocusReason, _REASON.BacktabFocusReason, _REASON.ShortcutFocusReason)
# Rows that come into sight are measured, and change what a share of all is.
_MEASURES = 3


class TranscriptView(QAbstractScrollArea):
    """Shows `rows` and follows their signals. Stays at the end only if it is there.

    Changes are collected and laid out before the next paint, or at once by `lay_out`. `scrolled` says that a person has
    scrolled.
    """

    scrolled = Signal()

    def __init__(self, rows: RowSource, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = rows
        self._theme = theme
        self._margin = theme.tokens.space_far
        self._anchor = ScrollAnchor(self._margin)
        self.setViewport(QWidget())  # to get Qt's own, PySide searches all widget classes: 10 ms of the first paint
        self._recycler = RowViewRecycler(rows, theme, actions, self.viewport())
        self.selection = SelectionController(rows, self._recycler, actions, self.viewport())
        self.hits = SearchHighlights(
            self._recycler,
            self.selection,
            self.viewport(),
            margin=self._margin,
            show_row=self.ensure_row_visible,
            scroll=self.scroll_by,
        )
        self._has_focus_ring = False
        self._older_trigger = OlderTrigger(rows, actions)
        self._placement = RowPlacement(self, rows, self._recycler, self._anchor, theme)
        self._smooth_scroll = SmoothScroll(theme, self)
        self._jump_to_end = JumpToEndView(theme, self)
        self._loading_older = LoadingOlderView(theme, self)
        self._layout_timer = QTimer(self, singleShot=True, interval=0)
        self._hidden_timer = QTimer(self, singleShot=True, interval=_HIDDEN_MS)
        self._trim_timer = QTimer(self, singleShot=True, interval=_TRIM_AFTER_MS)
        self._changes = RowChanges(self, rows, self._recycler, self._anchor)
        self._changes.reset.connect(self._older_trigger.reset)
        self._set_up()
        self._layout_timer.start()

    @property
    def is_at_end(self) -> bool:
        return self._anchor.shows_end

    @property
    def shown(self) -> range:
        """The visible rows."""
        return self._placement.shown

    @property
    def open_keys(self) -> dict[str, None]:
        """The rows whose cards a person expanded, the last one at the end."""
        return self._recycler.open_keys

    def close_part(self) -> bool:
        """Close an open part of a visible card, such as the field for a reason; False if there is none."""
        return self._recycler.close_part(self.shown)

    def close_last_opened(self) -> bool:
        """Collapse the visible row that was expanded last; False if there is none."""
        return self._recycler.close_last_opened(self.shown)

    def to_end(self) -> None:
        """Scroll to the newest row and stay at the end."""
        self._smooth_scroll.stop()
        self._anchor.to_end()
        self.lay_out()

    def to_start(self) -> None:
        self._smooth_scroll.stop()
        self._anchor.to_start()
        self.lay_out()

    @property
    def scroll_position(self) -> tuple[int, int] | None:
        """The top row and the pixels of it above the view, for `to_row`; None at the end."""
        return None if self._anchor.is_end else (self._anchor.index, self._anchor.offset)

    @property
    def scroll_share(self) -> float:
        """The scroll position, from 0 at the start to 1 at the end."""
        bar = self.verticalScrollBar()
        return 1.0 if self.is_at_end or not bar.maximum() else bar.value() / bar.maximum()

    def to_share(self, share: float) -> None:
        """Scroll to a `scroll_share`; at 1 it stays at the end."""
        if share >= 1:
            self.to_end()
            return
        bar, position = self.verticalScrollBar(), -1
        for _ in range(_MEASURES):
            before, position = position, round(share * bar.maximum())
            if position == before:
                break
            self._on_bar_moved(position)

    def to_row(self, index: int, offset: int = 0) -> None:
        """Scroll a row to the top of the view, with `offset` pixels of it above."""
        self._smooth_scroll.stop()
        self._anchor.to_row(index, offset)
        self.lay_out()

    def ensure_row_visible(self, index: int) -> None:
        """Scroll to a row unless it is visible."""
        self.lay_out()
        if index not in self.shown:
            self.to_row(index)

    def enter_row(self, index: int) -> None:
        """Focus a row, and scroll to it unless it is visible."""
        self.ensure_row_visible(index)
        self._recycler.view(index).take_focus()
        if self.viewport().isAncestorOf(self.window().focusWidget()):
            self._reveal(self.window().focusWidget())

    def focus_row(self, index: int) -> None:
        """Scroll to a row that waits for a person, to the end if that shows it, and focus it."""
        self.to_end()
        self.enter_row(index)

    def is_focused(self, index: int) -> bool:
        """Return whether a control of a visible row has the focus of its window."""
        return index in self.shown and self._recycler.view(index).isAncestorOf(self.window().focusWidget())

    def choose(self, index: int, number: int) -> bool:
        """Press the button of a digit in a visible row; False if it is not visible, is new or has no such button."""
        return index in self.shown and self._recycler.view(index).choose(number)

    def scroll_by(self, pixels: int) -> None:
        """Scroll down by `pixels`, up if negative, without animation."""
        self._placement.postpone_formulas()
        self._anchor.move_by(pixels)
        self.lay_out()
        self.scrolled.emit()

    def scroll_page(self, pages: int) -> None:
        """Scroll down by so many pages, up if negative, less a little that stays visible."""
        key = Qt.Key.Key_PageDown if pages > 0 else Qt.Key.Key_PageUp
        distance = key_scroll(key, self.viewport().height(), line_height(self._theme))
        self._smooth_scroll.scroll_by(abs(pages) * distance)

    def lay_out(self) -> None:
        """Lay out the visible rows now, if the transcript itself is visible."""
        self._layout_timer.stop()
        if not self.isVisible():
            return  # a tab in the background does nothing; it is laid out when it is shown
        self._placement.place()
        visible, is_at_end = self.shown, self.is_at_end
        self.selection.show_highlights(visible)
        self._jump_to_end.has_news = self._changes.has_news = self._changes.has_news and not is_at_end
        self._jump_to_end.update_position(is_at_end=is_at_end)
        self._loading_older.update_position(is_waiting=self._older_trigger.is_waiting and visible.start == 0)
        self._older_trigger.on_shown(visible)
        end_hover(*(view for _, view in self._recycler.all_views()))

    # Qt's event handlers.

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.lay_out()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._hidden_timer.stop()
        self.lay_out()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._hidden_timer.start()

    def wheelEvent(self, event: QWheelEvent) -> None:
        pixels = event.pixelDelta().y()
        if pixels:
            self.scroll_by(-pixels)
        elif event.angleDelta().y():
            self._smooth_scroll.scroll_by(wheel_scroll(event, line_height(self._theme)))
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        distance = key_scroll(key, self.viewport().height(), line_height(self._theme))
        if event.matches(QKeySequence.StandardKey.Copy):
            self.selection.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.selection.select_all()
        elif distance:
            self._smooth_scroll.scroll_by(distance)
        elif key == Qt.Key.Key_Home:
            self.to_start()
            self.scrolled.emit()
        elif key == Qt.Key.Key_End:
            self._on_jumped_to_end()
        else:
            event.ignore()

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QMouseEvent) and self.selection.handle_mouse(event):
            return True
        return super().viewportEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint a background behind selected cards; row views paint themselves."""
        tokens, margin = self._theme.tokens, self._theme.tokens.space_tight
        painter = QPainter(self.viewport())
        for rect in self.selection.selected_card_rects():
            paint_rounded(
                painter, rect.adjusted(-margin, -margin, margin, margin), tokens.radius_card, fill=tokens.selected
            )
        if self._has_focus_ring:
            paint_focus_ring(painter, self.viewport().rect(), tokens, tokens.radius_control)
        painter.end()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Shift+Tab from below focuses the last control."""
        super().focusInEvent(event)
        self._has_focus_ring = event.reason() in _KEY_REASONS
        if event.reason() == Qt.FocusReason.BacktabFocusReason:
            focus_last([view for _, view in self._recycler.views(self.shown)], self._reveal)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._has_focus_ring = False
        self.viewport().update()

    def focusNextPrevChild(self, next: bool) -> bool:
        views = [view for _, view in self._recycler.views(self.shown)]
        return focus_next(self, views, forward=next, reveal=self._reveal)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Does nothing: `lay_out` places the row views."""

    # Set-up.

    def _set_up(self) -> None:
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Window)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Conversation"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._changes.changed.connect(self._layout_timer.start)
        self._changes.moved.connect(self._placement.postpone_idle)
        self._theme.changed.connect(self._recycler.restyle)
        self._theme.changed.connect(self._layout_timer.start)
        self._recycler.part_opened.connect(self._reveal)
        self._smooth_scroll.moved.connect(self.scroll_by)
        self.selection.scrolled.connect(self.scroll_by)
        self._jump_to_end.clicked.connect(self._on_jumped_to_end)
        self._layout_timer.timeout.connect(self.lay_out)
        self._hidden_timer.timeout.connect(self._on_hidden)
        self._trim_timer.timeout.connect(trim_memory)
        as_signal(self._rows.inserted).connect(self._on_inserted)
        self._placement.bar.moved.connect(self._on_bar_moved)
        self._placement.bar.moved.connect(self.scrolled)
        self._placement.filled.connect(self.lay_out)

    # Slots.

    def _on_inserted(self, first: int, count: int) -> None:
        if count >= _MANY_ROWS:
            self._trim_timer.start()

    def _on_hidden(self) -> None:
        """Row views and their texts are most of the memory of a tab, and are made again when it is shown."""
        self._placement.postpone_idle()
        self._recycler.delete_views()
        self._trim_timer.start()

    def _on_jumped_to_end(self) -> None:
        self.to_end()
        self.scrolled.emit()

    def _on_bar_moved(self, value: int) -> None:
        self._smooth_scroll.stop()
        self._placement.postpone_formulas()
        self._anchor.move_to(value, self._recycler.heights)
        self.lay_out()

    def _reveal(self, widget: QWidget) -> None:
        """Scroll as little as needed to show a widget of a row, where the layout now places it."""
        self.lay_out()
        top = widget.mapTo(self.viewport(), QPoint(0, 0)).y()
        bottom = top + widget.height()
        if top < 0 or widget.height() > self.viewport().height():
            self.scroll_by(top - self._margin)
        elif bottom > self.viewport().height():
            self.scroll_by(bottom - self.viewport().height() + self._margin)


class RowChanges(QObject):
    """Passes row changes to the recycler and the scroll anchor.

    Emits `changed` after each change, `moved` before rows are removed or replaced, and `reset` when all rows are new.
    `has_news`: something changed below the view.
    """

    changed = Signal()
    moved = Signal()
    reset = Signal()

    def __init__(self, view: TranscriptView, rows: RowSource, recycler: RowViewRecycler, anchor: ScrollAnchor) -> None:
        super().__init__(view)
        self._view = view
        self._recycler = recycler
        self._anchor = anchor
        self.has_news = False
        as_signal(rows.reset).connect(self._on_reset)
        as_signal(rows.inserted).connect(self._on_inserted)
        as_signal(rows.changed).connect(self._on_changed)
        as_signal(rows.removed).connect(self._on_removed)
        recycler.resized.connect(self._on_row_resized)
        self._on_reset()

    def _on_reset(self) -> None:
        self.moved.emit()
        self._recycler.reset()
        self._anchor.to_end()
        self.has_news = False
        self.reset.emit()
        self.changed.emit()

    def _on_inserted(self, first: int, count: int) -> None:
        is_below = first > self._anchor.index
        was_empty = not len(self._recycler.heights)
        self._recycler.inserted(first, count)
        if not self._anchor.is_end and not was_empty:
            if first == 0 and self._anchor.index == 0:
                # The former first row gets a gap above it now; the visible rows must not move.
                self._anchor.offset += self._recycler.gap(count)
            self._anchor.inserted(first, count)
            self.has_news = self.has_news or (is_below and not self._view.is_at_end)
        self.changed.emit()

    def _on_changed(self, index: int) -> None:
        self._recycler.changed(index)
        if not self._anchor.is_end and index >= self._view.shown.stop:
            self.has_news = True
        self.changed.emit()

    def _on_removed(self, first: int, count: int) -> None:
        self.moved.emit()
        self._recycler.removed(first, count)
        self._anchor.removed(first, count)
        self.changed.emit()

    def _on_row_resized(self) -> None:
        # What a person opens grows downwards, also at the end of the conversation, and closes upwards.
        self._anchor.hold()
        self.changed.emit()
