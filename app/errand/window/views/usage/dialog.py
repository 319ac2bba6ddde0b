"""The usage dialog: totals, chart, tables by model and conversation, CSV export."""

import csv
import io
from datetime import date

from PySide6.QtCore import Signal
from PySide6.QtGui import QClipboard, QHideEvent, QShowEvent
from PySide6.QtWidgets import QDialog, QStackedWidget, QTabBar, QWidget

from errand.client.number_format import money, token_count
from errand.client.texts.usage import unpriced_text
from errand.protocol.usage import UsageReportResult, UsageRow
from errand.text.translation import tr, trn
from errand.window.stores.usage import UsageStore
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.views.usage.chart import UsageChartView, make_bars
from errand.window.views.usage.table import UsageTableView
from errand.window.widgets.banner import BannerView
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_hbox, set_vbox, vbox
from errand.window.widgets.dialogs import resize_on_screen
from errand.window.widgets.empty_state import EmptyStateView
from errand.window.widgets.labels import TextLabel

_NAMES = (tr("Cost"), tr("Input tokens"), tr("Cached"), tr("Output tokens"), tr("Turns"), tr("Tasks"))

_CSV_HEADER = (
    "by",
    "key",
    "title",
    "cost_usd",
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "turns",
    "tasks",
    "unpriced_turns",
    "estimated",
)

_PERIODS: tuple[tuple[int | None, str], ...] = (
    *((days, trn("{n} day", "{n} days", days)) for days in (7, 30, 90)),
    (None, tr("All")),
)
_TABLES = (tr("By model"), tr("By conversation"))
_WIDTH, _HEIGHT = 960, 680
_COPY = tr("Copy as CSV")
_EMPTY = tr("See what your tasks use: cost and tokens by day, model and conversation.")
_EMPTY_PERIOD = tr("No usage in this period. Choose a longer one above.")


class UsageTotalsView(QWidget):
    """Read by screen readers as one line."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        tokens = theme.tokens
        self._values = [TextLabel(theme, size=tokens.size_heading, bold=True) for _ in _NAMES]
        pairs = (
            vbox(value, TextLabel(theme, name, size=tokens.size_small, tone="muted"), spacing=0)
            for name, value in zip(_NAMES, self._values, strict=True)
        )
        set_hbox(self, *pairs, STRETCH, spacing=2 * tokens.space_far)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(value.text() for value in self._values)

    def show_total(self, total: UsageRow) -> None:
        used = total.usage
        texts = (
            money(used) or "?",
            token_count(used.input_tokens, used),
            f"{used.cache_read_tokens:,}",
            token_count(used.output_tokens, used),
            f"{total.turns:,}",
            f"{total.tasks:,}",
        )
        for value, text in zip(self._values, texts, strict=True):
            value.setText(text)
        self.setAccessibleName(", ".join(f"{name}: {text}" for name, text in zip(_NAMES, texts, strict=True)))


def to_csv(report: UsageReportResult) -> str:
    """Days, models and conversations, distinguished by the first column."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(_CSV_HEADER)
    lines.writerows(_line(row) for row in (*report.days, *report.models, *report.conversations))
    return text.getvalue()


def _line(row: UsageRow) -> tuple[str | int | float, ...]:
    used = row.usage
    cost = "" if used.cost_usd is None else used.cost_usd
    counts = (used.input_tokens, used.cache_read_tokens, used.cache_write_tokens, used.output_tokens)
    return (
        row.by,
        row.key,
        _without_formula(row.title),
        cost,
        *counts,
        row.turns,
        row.tasks,
        row.unpriced_turns,
        int(used.estimated),
    )


def _without_formula(title: str) -> str:
    """Return the title, marked as text if a spreadsheet would evaluate it as a formula."""
    return f"'{title}" if title[:1] in ("=", "+", "-", "@", "\t", "\r") else title


class UsageDialog(QDialog):
    """Updates while it is shown. `opened` gives a conversation."""

    opened = Signal(str)

    def __init__(self, store: UsageStore, theme: Theme, clipboard: QClipboard, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._theme = theme
        self._clipboard = clipboard
        self.setWindowTitle(tr("Usage"))
        resize_on_screen(self, theme.pixels(_WIDTH), theme.pixels(_HEIGHT))
        self.periods = _tabs(tr("Period"), [text for _, text in _PERIODS])
        self.periods.setCurrentIndex([days for days, _ in _PERIODS].index(store.days))
        self.kinds = _tabs(tr("Table"), _TABLES)
        self.copy_button = push_button(_COPY)
        self.totals = UsageTotalsView(theme)
        self.chart = UsageChartView(theme)
        self.table = UsageTableView(theme)
        self.banner = BannerView(theme)
        self.note = TextLabel(theme, tone="waiting", size=theme.tokens.size_small, wrap=True)
        self._chart_title = TextLabel(theme, bold=True)
        self._bar_text = TextLabel(theme, tone="muted", size=theme.tokens.size_small)
        self._empty = EmptyStateView(theme, "gauge", tr("No usage yet"), _EMPTY)
        self._empty_period = EmptyStateView(theme, "gauge", tr("No usage"), _EMPTY_PERIOD)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._on_changed()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.banner.hide()
        self._store.open()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._store.close()

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        head = hbox(
            TextLabel(self._theme, tr("Usage"), size=tokens.size_heading, bold=True),
            tokens.space_wide,
            self.periods,
            STRETCH,
            self.copy_button,
            spacing=tokens.space_close,
        )
        for layer in (QWidget(), self._page(), self._empty, self._empty_period):
            self._stack.addWidget(layer)
        inside = vbox(
            head,
            fill(self._stack),
            spacing=tokens.space_wide,
            margins=(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_far),
        )
        set_vbox(self, fill(inside), self.banner, spacing=0)

    def _page(self) -> QWidget:
        tokens = self._theme.tokens
        page = QWidget()
        set_vbox(
            page,
            self.totals,
            self.note,
            tokens.space_close,
            hbox(self._chart_title, STRETCH, self._bar_text),
            self.chart,
            self.kinds,
            fill(self.table),
            spacing=tokens.space_close,
        )
        return page

    def _connect(self) -> None:
        self.periods.currentChanged.connect(self._on_period_chosen)
        self.kinds.currentChanged.connect(self._on_kind_chosen)
        self.copy_button.clicked.connect(self._on_copy)
        self.chart.bar_described.connect(self._bar_text.setText)
        self.table.opened.connect(self._on_opened)
        self._store.changed.connect(self._on_changed)
        self._store.failed.connect(self._on_failed)

    def _on_changed(self) -> None:
        report = self._store.report
        self.copy_button.setText(_COPY)
        self.copy_button.setEnabled(report is not None and report.total.turns > 0)
        if report is None:
            return
        if not report.total.turns:
            self._stack.setCurrentWidget(self._empty if self._store.days is None else self._empty_period)
            return
        self.banner.hide()
        self._stack.setCurrentIndex(1)
        self.totals.show_total(report.total)
        self.note.show_text(unpriced_text(report.total))
        bars = make_bars(report, self._store.days, date.today())  # noqa: DTZ011 -- the user's local date
        self._chart_title.setText(bars.title)
        self.chart.show_bars(bars)
        self._show_table(report)

    def _show_table(self, report: UsageReportResult) -> None:
        if self.kinds.currentIndex() == 0:
            self.table.show_rows(report.models, tr("Model"))
        else:
            self.table.show_rows(report.conversations, tr("Conversation"))

    def _on_period_chosen(self, place: int) -> None:
        self._store.choose(_PERIODS[place][0])

    def _on_kind_chosen(self) -> None:
        if self._store.report is not None:
            self._show_table(self._store.report)

    def _on_copy(self) -> None:
        if self._store.report is not None:
            self._clipboard.setText(to_csv(self._store.report))
            self.copy_button.setText(tr("Copied"))

    def _on_opened(self, conversation_id: str) -> None:
        self.opened.emit(conversation_id)
        self.hide()

    def _on_failed(self, text: str) -> None:
        self.banner.show_message(text, "failed")


def _tabs(name: str, texts: list[str] | tuple[str, ...]) -> QTabBar:
    tabs = QTabBar()
    tabs.setAccessibleName(name)
    tabs.setExpanding(False)
    set_style(tabs, "look", "choice")
    for text in texts:
        tabs.addTab(text)
    return tabs
