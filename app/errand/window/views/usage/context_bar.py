"""The bar in the status line that shows how full the context window is."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy

from errand.protocol.tasks.task import Task
from errand.text.translation import grouped, tr, trn
from errand.window.stores.usage import ContextUsageStore
from errand.window.theme.style import focus_by_keys, set_tool_tip
from errand.window.theme.theme import Theme

if TYPE_CHECKING:
    from errand.window.views.usage.context_popover import ContextPopoverView

_WIDE, _HIGH = 44, 6
_NEARLY_FULL = 0.8


class ContextBarView(QAbstractButton):
    """Hidden until a reply was counted. If the context window is unknown, shows only the count.

    `summarise_requested` and `mode_requested` come from its popover.
    """

    summarise_requested = Signal()
    mode_requested = Signal(str)

    def __init__(self, store: ContextUsageStore, theme: Theme) -> None:
        super().__init__()
        self._store = store
        self._theme = theme
        self._share: float | None = None
        self._popover: ContextPopoverView | None = None
        self._lock = ""
        self._task: Task | None = None
        focus_by_keys(self)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.hide()
        store.changed.connect(self._on_changed)
        self.clicked.connect(self._on_clicked)
        theme.changed.connect(self.update)

    @property
    def is_nearly_full(self) -> bool:
        return self._share is not None and self._share >= _NEARLY_FULL

    @property
    def popover(self) -> "ContextPopoverView | None":
        """None until it was opened once."""
        return self._popover

    def show_task(self, task: Task) -> None:
        """The popover shows how far this task is."""
        self._task = task
        if self._popover is not None:
            self._popover.show_task(task)

    def lock(self, why: str) -> None:
        """Set why summarising is disabled, as a sentence; empty if it is enabled."""
        self._lock = why
        if self._popover is not None:
            self._popover.lock(why)

    def sizeHint(self) -> QSize:
        tokens = self._theme.tokens
        self.setFont(self._theme.font(tokens.size_small))
        text_width = self.fontMetrics().horizontalAdvance(self.text())
        bar = _WIDE + tokens.space_tight if self._share is not None else 0
        return QSize(text_width + bar + 2 * tokens.space_close, self.fontMetrics().height() + tokens.space_tight)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.setPen(QPen(QColor(tokens.focus), 2) if self.hasFocus() else Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tokens.hover) if self.underMouse() else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(frame, tokens.radius_control, tokens.radius_control)
        room = self.rect().adjusted(tokens.space_close, 0, -tokens.space_close, 0)
        if self._share is not None:
            self._paint_bar(painter, QRectF(room.left(), (self.height() - _HIGH) / 2, _WIDE, _HIGH), self._share)
        painter.setFont(self._theme.font(tokens.size_small))
        painter.setPen(QColor(tokens.waiting if self.is_nearly_full else tokens.muted))
        painter.drawText(room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, self.text())

    def _paint_bar(self, painter: QPainter, place: QRectF, share: float) -> None:
        tokens = self._theme.tokens
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tokens.pressed))
        painter.drawRoundedRect(place, _HIGH / 2, _HIGH / 2)
        place.setWidth(max(float(_HIGH), place.width() * min(share, 1.0)))
        painter.setBrush(QColor(tokens.waiting_mark if self.is_nearly_full else tokens.muted))
        painter.drawRoundedRect(place, _HIGH / 2, _HIGH / 2)

    def _on_changed(self) -> None:
        report = self._store.report
        if report is None:
            return
        window = report.window_tokens
        self._share = report.used_tokens / window if window else None
        used = trn("{n} token", "{n} tokens", report.used_tokens)
        self.setText(
            f"{self._share:.0%}".replace("%", " %")
            if self._share is not None
            else tr("{used} of context").format(used=used)
        )
        share_text = tr("{used} of {window}").format(used=used, window=grouped(window)) if window else used
        self.setAccessibleName(tr("Context used by the last reply: {share}. Show details").format(share=share_text))
        set_tool_tip(self, tr("Context used by the last reply: {share}").format(share=share_text))
        self.show()
        self.updateGeometry()
        self.update()
        if self._popover is not None:
            self._popover.show_parts(report)

    def _on_clicked(self) -> None:
        from errand.window.views.usage.context_popover import ContextPopoverView

        report = self._store.report
        if report is None:
            return
        if self._popover is None:
            self._popover = ContextPopoverView(self._theme, self)
            self._popover.summarise_requested.connect(self.summarise_requested)
            self._popover.mode_requested.connect(self.mode_requested)
            self._popover.lock(self._lock)
            if self._task is not None:
                self._popover.show_task(self._task)
        self._popover.show_parts(report)
        self._popover.open_above(self)
