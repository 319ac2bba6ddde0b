"""The usage chart: bars per day or month, computed (pure) and painted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QColor,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from errand.client.number_format import money, month_name, short_day, short_month
from errand.protocol.usage import Usage, UsageReportResult, UsageRow
from errand.text.translation import decimal, tr, trn
from errand.window.theme.theme import Theme

_MAX_DAYS = 100

_HEIGHT = 168
_MIN_BAR_HEIGHT = 2.0
_STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -7, Qt.Key.Key_PageDown: 7}


@dataclass(frozen=True, slots=True)
class Bar:
    """`label` is below the bar; `description` is its full description."""

    label: str
    description: str
    value: float


@dataclass(frozen=True, slots=True)
class Bars:
    """`unit` is the unit of the values: dollars, or tokens if nothing was paid."""

    title: str
    unit: str
    bars: tuple[Bar, ...]


def make_bars(report: UsageReportResult, days: int | None, today: date) -> Bars:
    """Covers a period that ends today."""
    unit = "money" if report.total.usage.cost_usd else "tokens"
    used = {date.fromisoformat(row.key): row for row in report.days}
    first = min(used, default=today) if days is None else today - timedelta(days=days - 1)
    days_shown = [first + timedelta(days=number) for number in range((max(today, *used) - first).days + 1)]
    if len(days_shown) <= _MAX_DAYS:
        bars = [_bar(short_day(day), _long_date(day), [used[day]] if day in used else [], unit) for day in days_shown]
        return Bars(tr("Money per day") if unit == "money" else tr("Tokens per day"), unit, tuple(bars))
    months = dict.fromkeys((day.year, day.month) for day in days_shown)
    of_month = {month: [row for day, row in used.items() if (day.year, day.month) == month] for month in months}
    bars = [
        _bar(f"{short_month(date(year, month, 1))} {year}", f"{month_name(date(year, month, 1))} {year}", rows, unit)
        for (year, month), rows in of_month.items()
    ]
    return Bars(tr("Money per month") if unit == "money" else tr("Tokens per month"), unit, tuple(bars))


def accessible_text(rows: Sequence[UsageRow]) -> str:
    """Return the figures of some rows as one line of text."""
    if not rows:
        return tr("no usage")
    costs = [row.usage.cost_usd for row in rows if row.usage.cost_usd is not None]
    parts = (
        dollars(sum(costs)) if costs else "",
        trn("{n} token", "{n} tokens", sum(map(total_tokens, rows))),
        trn("{n} turn", "{n} turns", sum(row.turns for row in rows)),
        trn("{n} task", "{n} tasks", sum(row.tasks for row in rows)),
    )
    return " · ".join(part for part in parts if part)


def total_tokens(row: UsageRow) -> int:
    return row.usage.input_tokens + row.usage.output_tokens


def axis_maximum(bars: Bars) -> float:
    """Return the maximum of the axis: the next round number above the highest bar."""
    most = max((bar.value for bar in bars.bars), default=0.0)
    if most <= 0:
        return 1.0
    size = 10 ** math.floor(math.log10(most))
    return next(step * size for step in (1, 2, 4, 6, 8, 10) if step * size >= most)


def amount_label(amount: float, unit: str) -> str:
    """Return a number on the axis, abbreviated."""
    if unit == "money":
        return dollars(amount)
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if amount >= size:
            return decimal(f"{amount / size:.3g}{sign}")
    return f"{amount:.0f}"


def dollars(amount: float) -> str:
    """Return an amount of money in the format used everywhere."""
    return money(Usage(cost_usd=amount))


def _bar(label: str, name: str, rows: Sequence[UsageRow], unit: str) -> Bar:
    paid = unit == "money"
    value = sum((row.usage.cost_usd or 0.0) if paid else total_tokens(row) for row in rows)
    return Bar(label, f"{name}: {accessible_text(rows)}", value)


def _long_date(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


class UsageChartView(QWidget):
    """`bar_described` gives the text of the bar under the pointer, or of the last bar."""

    bar_described = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._bars = Bars("", "money", ())
        self._current = -1
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    @property
    def description(self) -> str:
        """The text of the current bar."""
        return self._bars.bars[self._current].description if self._bars.bars else ""

    def show_bars(self, bars: Bars) -> None:
        """Keeps the current bar relative to the end, which is today."""
        from_end = len(self._bars.bars) - self._current if self._bars.bars else 1
        self._bars = bars
        self.setAccessibleName(tr("{title}, chart; use the arrow keys to move between bars").format(title=bars.title))
        self._select(len(bars.bars) - from_end)

    def sizeHint(self) -> QSize:
        return QSize(4 * _HEIGHT, _HEIGHT)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = len(self._bars.bars) - 1
        ends = {Qt.Key.Key_Home: 0, Qt.Key.Key_End: last}
        key = Qt.Key(event.key())
        if key in ends:
            self._select(ends[key])
        elif key in _STEPS:
            self._select(self._current + _STEPS[key])
        else:
            super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._bars.bars:
            plot = self._plot()
            self._select(int((event.position().x() - plot.left()) / self._step(plot)))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._bars.bars:
            return
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(tokens.size_small))
        self.setFont(painter.font())
        plot, top = self._plot(), axis_maximum(self._bars)
        self._paint_scale(painter, plot, top)
        self._paint_bars(painter, plot, top)
        self._paint_labels(painter, plot)
        if self.hasFocus():
            painter.setPen(QPen(QColor(tokens.focus), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(
                QRectF(self.rect()).adjusted(1, 1, -1, -1), tokens.radius_control, tokens.radius_control
            )

    def _paint_scale(self, painter: QPainter, plot: QRectF, top: float) -> None:
        tokens = self._theme.tokens
        for part in (0.0, 0.5, 1.0):
            y = plot.bottom() - part * plot.height()
            painter.setPen(QPen(QColor(tokens.outline if part == 0.0 else tokens.hairline), 1))
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            if part:
                painter.setPen(QColor(tokens.muted))
                label_rect = QRectF(0, y - tokens.size_small, plot.left() - tokens.space_close, 2 * tokens.size_small)
                painter.drawText(label_rect, _RIGHT_ALIGNED, amount_label(part * top, self._bars.unit))

    def _paint_bars(self, painter: QPainter, plot: QRectF, top: float) -> None:
        tokens, step = self._theme.tokens, self._step(plot)
        gap = min(step / 3, float(tokens.space_tight))
        painter.setPen(Qt.PenStyle.NoPen)
        for index, bar in enumerate(self._bars.bars):
            left = plot.left() + index * step
            if index == self._current:
                painter.fillRect(QRectF(left, plot.top(), step, plot.height()), QColor(tokens.hover))
            if bar.value:
                high = max(_MIN_BAR_HEIGHT, bar.value / top * plot.height())
                painter.setBrush(QColor(tokens.accent))
                radius = min(2.0, (step - gap) / 2)
                painter.drawRoundedRect(QRectF(left + gap / 2, plot.bottom() - high, step - gap, high), radius, radius)

    def _paint_labels(self, painter: QPainter, plot: QRectF) -> None:
        """Paint as many labels as fit, always including the last one."""
        tokens, step = self._theme.tokens, self._step(plot)
        bars = self._bars.bars
        widest = max(self.fontMetrics().horizontalAdvance(bar.label) for bar in bars)
        every = max(1, int((widest + tokens.space_wide) / step) + 1) if step < widest + tokens.space_wide else 1
        painter.setPen(QColor(tokens.muted))
        end = plot.right() + widest
        for index in range(len(bars) - 1, -1, -every):
            centre = plot.left() + (index + 0.5) * step
            left = min(max(centre - widest / 2 - 2, plot.left()), plot.right() - widest - 4)
            if left + widest + tokens.space_close > end:
                continue
            end = left
            room = QRectF(left, plot.bottom() + tokens.space_tight, widest + 4, 2 * tokens.size_small)
            painter.drawText(room, Qt.AlignmentFlag.AlignHCenter, bars[index].label)

    def _plot(self) -> QRectF:
        tokens = self._theme.tokens
        top, unit = axis_maximum(self._bars), self._bars.unit
        widths = [self.fontMetrics().horizontalAdvance(amount_label(part * top, unit)) for part in (0.5, 1)]
        left = max(widths) + 2 * tokens.space_close
        return QRectF(self.rect()).adjusted(left, tokens.space_normal, -tokens.space_close, -2 * tokens.size_small)

    def _step(self, plot: QRectF) -> float:
        return plot.width() / max(1, len(self._bars.bars))

    def _select(self, index: int) -> None:
        self._current = min(max(index, 0), len(self._bars.bars) - 1)
        self.setAccessibleDescription(self.description)
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.DescriptionChanged))
        self.bar_described.emit(self.description)
        self.update()


_RIGHT_ALIGNED = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
