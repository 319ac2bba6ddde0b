"""The transcript: one column of row views, created only for visible rows."""

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFocusEvent,
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

from app.window.rows.base import RowActions
from app.window.rows.row import RowSource, as_signal
from app.window.theme.style import paint_focus_ring, paint_rounded
from app.window.theme.theme import Theme
from app.window.transcript.interaction import SearchHighlights, SelectionController
from app.window.transcript.layout import ScrollAnchor
from app.window.transcript.overlays import JumpToEndView, LoadingOlderView, OlderTrigger
from app.window.transcript.recycler import RowViewRecycler, focus_last, focus_next
from app.window.transcript.scrolling import (
    ScrollBarSync,
    SmoothScroll,
    key_scroll,
    line_height,
    next_to_measure,
    overscan,
    wheel_scroll,
)

_REASON = Qt.FocusReason
_KEY_REASONS = (_REASON.TabFocusReason, _REASON.BacktabFocusReason, _REASON.ShortcutFocusReason)


class TranscriptView(QAbstractScrollArea):
    """Shows `rows` and follows their signals. Stays at the end only if it is there.

    Changes are collected and laid out before the next paint, or at once by `settle`.
    """

    def __init__(self, rows: RowSource, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = rows
        self._theme = theme
        self._pad = theme.tokens.space_far
        self._anchor = ScrollAnchor(self._pad)
        self.setViewport(QWidget())  # to get Qt's own, PySide searches all widget classes: 10 ms of the first paint
        self._stage = RowViewRecycler(rows, theme, actions, self.viewport())
        self.selection = SelectionController(rows, self._stage, actions, self.viewport())
        self.hits = SearchHighlights(
            self._stage, self.selection, self.viewport(), pad=self._pad, bring=self.bring_row, scroll=self.scroll_by
        )
        self._shown = range(0)
        self._has_ring = False
        self._older = OlderTrigger(rows, actions)
        self._bar = ScrollBarSync(self.verticalScrollBar())
        self._glide = SmoothScroll(theme, self)
        self._latest = JumpToEndView(theme, self)
        self._older_pill = LoadingOlderView(theme, self)
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._idle = QTimer(self, singleShot=True, interval=0)
        self._changes = RowChanges(self, rows, self._stage, self._anchor)
        self._changes.reset.connect(self._older.reset)
        self._dress()
        self._connect()
        self._soon.start()

    @property
    def is_at_end(self) -> bool:
        return self._anchor.is_end

    @property
    def shown(self) -> range:
        """The visible rows."""
        return self._shown

    def to_end(self) -> None:
        """Scroll to the newest row and stay at the end."""
        self._glide.stop()
        self._anchor.to_end()
        self.settle()

    def to_start(self) -> None:
        self._glide.stop()
        self._anchor.to_start()
        self.settle()

    @property
    def place(self) -> tuple[int, int] | None:
        """The top row and the pixels of it above the view, for `to_row`; None at the end."""
        return None if self._anchor.is_end else (self._anchor.index, self._anchor.offset)

    def to_row(self, index: int, offset: int = 0) -> None:
        """Scroll a row to the top of the view, with `offset` pixels of it above."""
        self._glide.stop()
        self._anchor.to_row(index, offset)
        self.settle()

    def bring_row(self, index: int) -> None:
        """Scroll to a row unless it is visible."""
        self.settle()
        if index not in self._shown:
            self.to_row(index)

    def enter_row(self, index: int) -> None:
        """Focus a row, and scroll to it unless it is visible."""
        self.bring_row(index)
        self._stage.view(index).take_focus()
        if self.viewport().isAncestorOf(self.window().focusWidget()):
            self._reveal(self.window().focusWidget())

    def focus_row(self, index: int) -> None:
        """Scroll to a row that waits for a person, to the end if that shows it, and focus it."""
        self.to_end()
        self.enter_row(index)

    def scroll_by(self, pixels: int) -> None:
        """Scroll down by `pixels`, up if negative, without animation."""
        self._anchor.by(pixels)
        self.settle()

    def settle(self) -> None:
        """Lay out the visible rows now, if the transcript itself is visible."""
        self._soon.stop()
        if not self.isVisible():
            return  # a tab in the background does nothing; it is laid out when it is shown
        self._stage.set_width(max(1, min(self._theme.tokens.column, self.viewport().width() - 2 * self._pad)))
        self._shown = self._anchor.settle(self._stage.heights, self.viewport().height(), self._stage.measure)
        self._place()
        self.selection.show_marks(self._shown)
        self._set_bar()
        self._show_pills()
        self._older.see(self._shown)
        self._idle.start()

    # Qt's event handlers.

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.settle()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.settle()

    def wheelEvent(self, event: QWheelEvent) -> None:
        pixels = event.pixelDelta().y()
        if pixels:
            self.scroll_by(-pixels)
        elif event.angleDelta().y():
            self._glide.by(wheel_scroll(event, line_height(self._theme)))
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        way = key_scroll(key, self.viewport().height(), line_height(self._theme))
        if event.matches(QKeySequence.StandardKey.Copy):
            self.selection.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.selection.select_all()
        elif way:
            self._glide.by(way)
        elif key == Qt.Key.Key_Home:
            self.to_start()
        elif key == Qt.Key.Key_End:
            self.to_end()
        else:
            event.ignore()

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QMouseEvent) and self.selection.handle_mouse(event):
            return True
        return super().viewportEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint a background behind selected cards; row views paint themselves."""
        tokens, around = self._theme.tokens, self._theme.tokens.space_tight
        painter = QPainter(self.viewport())
        for place in self.selection.plain_places():
            paint_rounded(
                painter, place.adjusted(-around, -around, around, around), tokens.radius_card, fill=tokens.selected
            )
        if self._has_ring:
            paint_focus_ring(painter, self.viewport().rect(), tokens, tokens.radius_control)
        painter.end()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Shift+Tab from below focuses the last control."""
        super().focusInEvent(event)
        self._has_ring = event.reason() in _KEY_REASONS
        if event.reason() == Qt.FocusReason.BacktabFocusReason:
            focus_last([view for _, view in self._stage.views(self._shown)], self._reveal)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._has_ring = False
        self.viewport().update()

    def focusNextPrevChild(self, next: bool) -> bool:
        views = [view for _, view in self._stage.views(self._shown)]
        return focus_next(self, views, forward=next, reveal=self._reveal)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Does nothing: `settle` places the row views."""

    # Set-up.

    def _dress(self) -> None:
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Window)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Conversation")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def _connect(self) -> None:
        self._changes.changed.connect(self._soon.start)
        self._changes.moved.connect(self._idle.stop)  # the rows near the view changed
        self._theme.changed.connect(self._stage.restyle)
        self._theme.changed.connect(self._soon.start)
        self._glide.moved.connect(self.scroll_by)
        self.selection.scrolled.connect(self.scroll_by)
        self._latest.clicked.connect(self.to_end)
        self._soon.timeout.connect(self.settle)
        self._idle.timeout.connect(self._on_idle)
        self._bar.moved.connect(self._on_bar_moved)

    # Slots.

    def _on_bar_moved(self, value: int) -> None:
        self._glide.stop()
        self._anchor.to(value, self._stage.heights)
        self.settle()

    def _on_idle(self) -> None:
        """Create and measure one row near the view in advance, for smooth scrolling."""
        for index in next_to_measure(self._shown, self._rows.count()):
            if self._stage.prepare(index):
                self._idle.start()
                return
        self._set_bar()

    # Layout.

    def _place(self) -> None:
        kept = overscan(self._shown, self._rows.count())
        far = self._stage.keep(kept)
        for view in far:
            view.move(view.x(), -view.height() - self.viewport().height())
        left = (self.width() - self._stage.width) // 2  # of the view, so that the scroll bar does not shift the rows
        top = self._anchor.y(self._stage.heights)
        y = self._pad + self._stage.heights.before(self._shown.start) - top
        for index in self._shown:
            view = self._stage.view(index)
            height, gap = self._stage.measure(index), self._stage.gap(index)
            view.setGeometry(left, y + gap, self._stage.width, height - gap)
            view.show()
            y += height
        for index, view in self._stage.views(kept):
            if index not in self._shown:
                view.hide()

    def _set_bar(self) -> None:
        y = None if self._anchor.is_end else self._anchor.y(self._stage.heights)
        total = self._stage.heights.total + 2 * self._pad
        self._bar.show(y, height=self.viewport().height(), total=total, line=line_height(self._theme))

    def _show_pills(self) -> None:
        self._latest.has_news = self._changes.has_news = self._changes.has_news and not self._anchor.is_end
        self._latest.place(is_at_end=self._anchor.is_end)
        self._older_pill.place(is_waiting=self._older.is_waiting and self._shown.start == 0)

    def _reveal(self, widget: QWidget) -> None:
        """Scroll as little as needed to show the focused control."""
        top = widget.mapTo(self.viewport(), QPoint(0, 0)).y()
        bottom = top + widget.height()
        if top < 0 or widget.height() > self.viewport().height():
            self.scroll_by(top - self._pad)
        elif bottom > self.viewport().height():
            self.scroll_by(bottom - self.viewport().height() + self._pad)


class RowChanges(QObject):
    """Passes row changes to the recycler and the scroll anchor.

    Emits `changed` after each change, `moved` before rows are removed or replaced, and `reset` when all rows are new.
    `has_news`: something changed below the view.
    """

    changed = Signal()
    moved = Signal()
    reset = Signal()

    def __init__(self, view: TranscriptView, rows: RowSource, stage: RowViewRecycler, anchor: ScrollAnchor) -> None:
        super().__init__(view)
        self._view = view
        self._stage = stage
        self._anchor = anchor
        self.has_news = False
        as_signal(rows.reset).connect(self._on_reset)
        as_signal(rows.inserted).connect(self._on_inserted)
        as_signal(rows.changed).connect(self._on_changed)
        as_signal(rows.removed).connect(self._on_removed)
        stage.resized.connect(self._on_row_resized)
        self._on_reset()

    def _on_reset(self) -> None:
        self.moved.emit()
        self._stage.reset()
        self._anchor.to_end()
        self.has_news = False
        self.reset.emit()
        self.changed.emit()

    def _on_inserted(self, first: int, count: int) -> None:
        is_below = first > self._anchor.index
        was_empty = not len(self._stage.heights)
        self._stage.inserted(first, count)
        if not self._anchor.is_end and not was_empty:
            if first == 0 and self._anchor.index == 0:
                # The former first row gets a gap above it now; the visible rows must not move.
                self._anchor.offset += self._stage.gap(count)
            self._anchor.inserted(first, count)
            self.has_news = self.has_news or is_below
        self.changed.emit()

    def _on_changed(self, index: int) -> None:
        self._stage.changed(index)
        if not self._anchor.is_end and index >= self._view.shown.stop:
            self.has_news = True
        self.changed.emit()

    def _on_removed(self, first: int, count: int) -> None:
        self.moved.emit()
        self._stage.removed(first, count)
        self._anchor.removed(first, count)
        self.changed.emit()

    def _on_row_resized(self) -> None:
        # A card that the user opens grows downwards, also at the end of the conversation.
        if self._anchor.is_end and self._view.viewport().height() < self._stage.heights.total:
            self._anchor.is_end = False
        self.changed.emit()
