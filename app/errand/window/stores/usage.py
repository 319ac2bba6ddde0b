"""Tokens and cost: of a period, and of the last turn's context."""

from PySide6.QtCore import QObject, QTimer, Signal

from errand.client.texts.usage import period_of
from errand.protocol.context import CONTEXT_EXPLAIN, ContextExplainParams, ContextExplainResult
from errand.protocol.tasks.task import Task
from errand.protocol.usage import USAGE_REPORT, UsageReportResult
from errand.window.stores.session import EngineSession
from errand.window.stores.tasks import TaskStore

_THROTTLE_MS = 500


class UsageStore(QObject):
    """`report` is None until the engine has answered; `days` None means all time."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession, tasks: TaskStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._is_open = False
        self.days: int | None = 30
        self.report: UsageReportResult | None = None
        self._reload_timer = QTimer(self)
        self._reload_timer.setSingleShot(True)
        self._reload_timer.setInterval(_THROTTLE_MS)
        self._reload_timer.timeout.connect(self._load)
        tasks.taskUpdate.connect(self._on_task)
        session.state_changed.connect(self._on_state_changed)

    def choose(self, days: int | None) -> None:
        """Select another period."""
        self.days = days
        self._load()

    def open(self) -> None:
        """Load now, and again after each reconnect."""
        self._is_open = True
        self._load()

    def close(self) -> None:
        self._is_open = False
        self._reload_timer.stop()

    def _load(self) -> None:
        self._session.spawn(self._read(self.days), self.failed.emit)

    async def _read(self, days: int | None) -> None:
        report = await self._session.call(USAGE_REPORT, period_of(days))
        if days == self.days:
            self.report = report
            self.changed.emit()

    def _on_task(self, task: Task) -> None:
        if self._is_open and task.outcome.ended_at is not None:
            self._reload_timer.start()

    def _on_state_changed(self) -> None:
        if self._is_open and self._session.state == "ready":
            self._load()


class ContextUsageStore(QObject):
    """`report` stays until a newer turn is counted: a task that just started has sent no request."""

    changed = Signal()

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self._requested: tuple[str, int] | None = None
        self.report: ContextExplainResult | None = None

    def show_task(self, task: Task | None) -> None:
        """The task in view has changed."""
        if task is None or not task.progress.usage.input_tokens:
            return
        now = (task.id, task.progress.usage.input_tokens)
        if now != self._requested:
            self._requested = now
            self._session.spawn(self._ask(now), self._on_failed)

    async def _ask(self, asked: tuple[str, int]) -> None:
        report = await self._session.call(CONTEXT_EXPLAIN, ContextExplainParams(task_id=asked[0]))
        if asked == self._requested and report.used_tokens:
            self.report = report
            self.changed.emit()

    def _on_failed(self, text: str) -> None:
        """The connection is lost, which a banner shows; the next change of the task loads again."""
        self._requested = None
