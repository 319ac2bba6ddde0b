"""What was used in a period, read anew when a task ends while somebody looks."""

from PySide6.QtCore import QObject, QTimer, Signal

from app.client.usage_words import period_of
from app.protocol.tasks import Task
from app.protocol.usage import UsageReportResult
from app.protocol.wire import USAGE_REPORT
from app.window.stores.session import Session
from app.window.stores.tasks import TaskStore

_SOON_MS = 500


class UsageStore(QObject):
    """`report` is None until the engine has answered. `days` is None for all time."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: Session, tasks: TaskStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._is_open = False
        self.days: int | None = 30
        self.report: UsageReportResult | None = None
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_SOON_MS)
        self._soon.timeout.connect(self._load)
        tasks.taskUpdate.connect(self._on_task)
        session.state_changed.connect(self._on_state_changed)

    def choose(self, days: int | None) -> None:
        """Another period."""
        self.days = days
        self._load()

    def open(self) -> None:
        """Somebody looks from now on."""
        self._is_open = True
        self._load()

    def close(self) -> None:
        self._is_open = False
        self._soon.stop()

    def _load(self) -> None:
        self._session.spawn(self._read(self.days), self.failed.emit)

    async def _read(self, days: int | None) -> None:
        found = await self._session.call(USAGE_REPORT, period_of(days))
        if days == self.days:
            self.report = found
            self.changed.emit()

    def _on_task(self, task: Task) -> None:
        if self._is_open and task.ended_at is not None:
            self._soon.start()

    def _on_state_changed(self) -> None:
        if self._is_open and self._session.state == "ready":
            self._load()
