"""The transcript: one column of row views, made only where they are visible."""

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer
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
    next_to_measure,
    overscan,
    wheel_scroll,
)

_REASON = Qt.FocusReason
_KEY_REASONS = (_REASON.TabFocusReason, _REASON.BacktabFocusReason, _REASON.ShortcutFocusReason)


class TranscriptView(QAbstractScrollArea):
    """Shows `rows` and follows their signals. Sticks to the end only while it is there.

    Signals are gathered: what changed is laid out before the next painting, or at once by `settle`.
    """

    def __init__(self, rows: RowSource, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = rows
        self._theme = theme
        self._pad = theme.tokens.space_far
        self._anchor = ScrollAnchor(self._pad)
        self.setViewport(QWidget())  # to ask for Qt's own has PySide look through all widgets: 10 ms of the first paint
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
        self._dress()
        self._connect()
        self._on_reset()

    @property
    def is_at_end(self) -> bool:
        return self._anchor.is_end

    @property
    def shown(self) -> range:
        """The rows in view."""
        return self._shown

    def to_end(self) -> None:
        """Go to the newest row and stay with what comes."""
        self._glide.stop()
        self._anchor.to_end()
        self.settle()

    def to_start(self) -> None:
        self._glide.stop()
        self._anchor.to_start()
        self.settle()

    @property
    def place(self) -> tuple[int, int] | None:
        """The row at the top and how many pixels of it are above; None at the end. `to_row` goes back there."""
        return None if self._anchor.is_end else (self._anchor.index, self._anchor.offset)

    def to_row(self, index: int, offset: int = 0) -> None:
        """Bring a row to the top of the view, with `offset` pixels of it above."""
        self._glide.stop()
        self._anchor.to_row(index, offset)
        self.settle()

    def bring_row(self, index: int) -> None:
        """Bring a row into view, and scroll only where it is not there."""
        self.settle()
        if index not in self._shown:
            self.to_row(index)

    def enter_row(self, index: int) -> None:
        """Bring the keyboard into a row, and scroll only where it is not in view."""
        self.bring_row(index)
        self._stage.block(index).take_focus()
        if self.viewport().isAncestorOf(self.window().focusWidget()):
            self._reveal(self.window().focusWidget())

    def focus_row(self, index: int) -> None:
        """Bring a row that waits for a person into view, at the end if it is there, and the keyboard into it."""
        self.to_end()
        self.enter_row(index)

    def scroll_by(self, pixels: int) -> None:
        """Down by `pixels`, up if negative, at once."""
        self._anchor.by(pixels)
        self.settle()

    def settle(self) -> None:
        """Lay out now what is in view, if the transcript is."""
        self._soon.stop()
        if not self.isVisible():
            return  # a tab in the background does nothing; it is laid out when it is shown
        self._stage.set_width(self._column())
        self._shown = self._anchor.settle(self._stage.heights, self.viewport().height(), self._stage.measure)
        self._place()
        self.selection.show_marks(self._shown)
        self._set_bar()
        self._show_pills()
        self._older.see(self._shown)
        self._idle.start()

    # What Qt calls.

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
            self._glide.by(wheel_scroll(event, self._line()))
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        way = key_scroll(key, self.viewport().height(), self._line())
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
        """A ground behind selected cards; blocks paint themselves."""
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
        """Who comes from below goes on upwards from the last control."""
        super().focusInEvent(event)
        self._has_ring = event.reason() in _KEY_REASONS
        if event.reason() == Qt.FocusReason.BacktabFocusReason:
            focus_last([block for _, block in self._stage.blocks(self._shown)], self._reveal)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._has_ring = False
        self.viewport().update()

    def focusNextPrevChild(self, next: bool) -> bool:
        blocks = [block for _, block in self._stage.blocks(self._shown)]
        return focus_next(self, blocks, forward=next, reveal=self._reveal)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Blocks are placed by `settle` alone."""

    # Building.

    def _dress(self) -> None:
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Window)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Conversation")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def _connect(self) -> None:
        as_signal(self._rows.reset).connect(self._on_reset)
        as_signal(self._rows.inserted).connect(self._on_inserted)
        as_signal(self._rows.changed).connect(self._on_changed)
        as_signal(self._rows.removed).connect(self._on_removed)
        self._theme.changed.connect(self._on_theme_changed)
        self._stage.resized.connect(self._on_block_resized)
        self._glide.moved.connect(self.scroll_by)
        self.selection.scrolled.connect(self.scroll_by)
        self._latest.clicked.connect(self.to_end)
        self._soon.timeout.connect(self.settle)
        self._idle.timeout.connect(self._on_idle)
        self._bar.moved.connect(self._on_bar_moved)

    # Slots.

    def _on_reset(self) -> None:
        self._idle.stop()  # what is near is another thing now
        self._stage.reset()
        self._anchor.to_end()
        self._latest.has_news = False
        self._older.reset()
        self._soon.start()

    def _on_inserted(self, first: int, count: int) -> None:
        is_below = first > self._anchor.index
        was_empty = not len(self._stage.heights)
        self._stage.inserted(first, count)
        if not self._anchor.is_end and not was_empty:
            if first == 0 and self._anchor.index == 0:
                # The first row has no gap above it, but gets one now; what is seen must stay where it is.
                self._anchor.offset += self._stage.gap(count)
            self._anchor.inserted(first, count)
            self._latest.has_news = self._latest.has_news or is_below
        self._soon.start()

    def _on_changed(self, index: int) -> None:
        self._stage.changed(index)
        if not self._anchor.is_end and index >= self._shown.stop:
            self._latest.has_news = True
        self._soon.start()

    def _on_removed(self, first: int, count: int) -> None:
        self._idle.stop()
        self._stage.removed(first, count)
        self._anchor.removed(first, count)
        self._soon.start()

    def _on_theme_changed(self) -> None:
        self._stage.restyle()
        self._soon.start()

    def _on_block_resized(self, index: int) -> None:
        # What a person opens grows downwards, also at the end of the conversation.
        if self._anchor.is_end and self.viewport().height() < self._stage.heights.total:
            self._anchor.is_end = False
        self._soon.start()

    def _on_bar_moved(self, value: int) -> None:
        self._glide.stop()
        self._anchor.to(value, self._stage.heights)
        self.settle()

    def _on_idle(self) -> None:
        """Make and measure one row near the view, so that scrolling finds it ready."""
        for index in next_to_measure(self._shown, self._rows.count()):
            if not self._stage.has_block(index) or not self._stage.heights.is_measured(index):
                self._stage.block(index)
                self._stage.measure(index)
                self._idle.start()
                return
        self._set_bar()

    # Placing.

    def _place(self) -> None:
        kept = overscan(self._shown, self._rows.count())
        far = self._stage.keep(kept)
        for block in far:
            block.move(block.x(), -block.height() - self.viewport().height())
        left = (self.width() - self._stage.width) // 2  # of the view, not the viewport: the scroll bar moves nothing
        top = self._anchor.y(self._stage.heights)
        y = self._pad + self._stage.heights.before(self._shown.start) - top
        for index in self._shown:
            block = self._stage.block(index)
            height, gap = self._stage.measure(index), self._stage.gap(index)
            block.setGeometry(left, y + gap, self._stage.width, height - gap)
            block.show()
            y += height
        for index, block in self._stage.blocks(kept):
            if index not in self._shown:
                block.hide()

    def _set_bar(self) -> None:
        y = None if self._anchor.is_end else self._anchor.y(self._stage.heights)
        total = self._stage.heights.total + 2 * self._pad
        self._bar.show(y, height=self.viewport().height(), total=total, line=self._line())

    def _show_pills(self) -> None:
        if self._anchor.is_end:
            self._latest.has_news = False
        self._latest.place(is_at_end=self._anchor.is_end)
        self._older_pill.place(is_waiting=self._older.is_waiting and self._shown.start == 0)

    def _reveal(self, widget: QWidget) -> None:
        """Scroll as little as needed to show what got the keyboard."""
        top = widget.mapTo(self.viewport(), QPoint(0, 0)).y()
        bottom = top + widget.height()
        if top < 0 or widget.height() > self.viewport().height():
            self.scroll_by(top - self._pad)
        elif bottom > self.viewport().height():
            self.scroll_by(bottom - self.viewport().height() + self._pad)

    # Numbers.

    def _column(self) -> int:
        return max(1, min(self._theme.tokens.column, self.viewport().width() - 2 * self._pad))

    def _line(self) -> int:
        return self._theme.tokens.size_base * 3 // 2
