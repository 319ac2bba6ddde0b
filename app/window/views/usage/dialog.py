"""The usage page: totals of a period, a chart over time, and tables by model and by conversation."""

from datetime import date

from PySide6.QtCore import Signal
from PySide6.QtGui import QClipboard, QHideEvent, QShowEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from app.client.usage_words import unpriced_words
from app.protocol.usage import UsageReportResult
from app.window.stores.usage import UsageStore
from app.window.theme.look import push_button, set_look
from app.window.theme.theme import Theme
from app.window.views.usage.bars import bars_of
from app.window.views.usage.chart import UsageChart
from app.window.views.usage.csv import csv_of
from app.window.views.usage.table import UsageTable
from app.window.views.usage.totals import TotalsView
from app.window.widgets.banner import Banner
from app.window.widgets.empty_state import EmptyState
from app.window.widgets.text_label import TextLabel

_PERIODS: tuple[tuple[int | None, str], ...] = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (None, "All"))
_TABLES = ("By model", "By conversation")
_WIDTH, _HEIGHT = 860, 680
_COPY = "Copy as CSV"
_EMPTY = "Here stands what your tasks use: money and tokens by day, model and conversation."
_EMPTY_PERIOD = "No task used a model in this time. Choose a longer one above."


class UsageDialog(QDialog):
    """Follows what the engine counts while it is shown. `opened` gives a conversation."""

    opened = Signal(str)

    def __init__(self, store: UsageStore, theme: Theme, clipboard: QClipboard, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._theme = theme
        self._clipboard = clipboard
        self.setWindowTitle("Usage")
        self.resize(_WIDTH, _HEIGHT)
        self.periods = _tabs("Period", [text for _, text in _PERIODS])
        self.periods.setCurrentIndex([days for days, _ in _PERIODS].index(store.days))
        self.kinds = _tabs("Table", _TABLES)
        self.copy_button = push_button(_COPY)
        self.totals = TotalsView(theme)
        self.chart = UsageChart(theme)
        self.table = UsageTable(theme)
        self.banner = Banner(theme)
        self.note = TextLabel(theme, tone="waiting", size=theme.tokens.size_small, wrap=True)
        self._chart_title = TextLabel(theme, bold=True)
        self._told = TextLabel(theme, tone="muted", size=theme.tokens.size_small)
        self._empty = EmptyState(theme, "gauge", "Nothing was used yet", _EMPTY)
        self._empty_period = EmptyState(theme, "gauge", "Nothing was used", _EMPTY_PERIOD)
        self._layers = QStackedWidget()
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
        head = QHBoxLayout()
        head.setSpacing(tokens.space_close)
        head.addWidget(TextLabel(self._theme, "Usage", size=tokens.size_heading, bold=True))
        head.addSpacing(tokens.space_wide)
        head.addWidget(self.periods)
        head.addStretch(1)
        head.addWidget(self.copy_button)
        for layer in (QWidget(), self._page(), self._empty, self._empty_period):
            self._layers.addWidget(layer)
        inside = QVBoxLayout()
        inside.setContentsMargins(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_far)
        inside.setSpacing(tokens.space_wide)
        inside.addLayout(head)
        inside.addWidget(self._layers, 1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self.banner)
        whole.addLayout(inside, 1)

    def _page(self) -> QWidget:
        tokens = self._theme.tokens
        page = QWidget()
        titles = QHBoxLayout()
        titles.addWidget(self._chart_title)
        titles.addStretch(1)
        titles.addWidget(self._told)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.space_close)
        column.addWidget(self.totals)
        column.addWidget(self.note)
        column.addSpacing(tokens.space_close)
        column.addLayout(titles)
        column.addWidget(self.chart)
        column.addWidget(self.kinds)
        column.addWidget(self.table, 1)
        return page

    def _connect(self) -> None:
        self.periods.currentChanged.connect(self._on_period_chosen)
        self.kinds.currentChanged.connect(self._on_kind_chosen)
        self.copy_button.clicked.connect(self._on_copy)
        self.chart.told.connect(self._told.setText)
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
            self._layers.setCurrentWidget(self._empty if self._store.days is None else self._empty_period)
            return
        self.banner.hide()
        self._layers.setCurrentIndex(1)
        self.totals.show_total(report.total)
        self.note.setText(unpriced_words(report.total))
        self.note.setVisible(bool(self.note.text()))
        bars = bars_of(report, self._store.days, date.today())  # noqa: DTZ011 -- the person's own day
        self._chart_title.setText(bars.title)
        self.chart.show_bars(bars)
        self._show_table(report)

    def _show_table(self, report: UsageReportResult) -> None:
        if self.kinds.currentIndex() == 0:
            self.table.show_rows(report.models, "Model")
        else:
            self.table.show_rows(report.conversations, "Conversation")

    def _on_period_chosen(self, place: int) -> None:
        self._store.choose(_PERIODS[place][0])

    def _on_kind_chosen(self) -> None:
        if self._store.report is not None:
            self._show_table(self._store.report)

    def _on_copy(self) -> None:
        if self._store.report is not None:
            self._clipboard.setText(csv_of(self._store.report))
            self.copy_button.setText("Copied")

    def _on_opened(self, conversation_id: str) -> None:
        self.opened.emit(conversation_id)
        self.hide()

    def _on_failed(self, text: str) -> None:
        self.banner.tell(text, "failed")


def _tabs(name: str, texts: list[str] | tuple[str, ...]) -> QTabBar:
    tabs = QTabBar()
    tabs.setAccessibleName(name)
    tabs.setExpanding(False)
    set_look(tabs, "look", "choice")
    for text in texts:
        tabs.addTab(text)
    return tabs
