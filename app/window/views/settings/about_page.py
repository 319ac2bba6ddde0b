"""What this is: version, licence, where the data is, and what the engine uses, as measured by itself."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFormLayout, QWidget

from app.protocol.engine import EmptyParams, EngineStatusResult
from app.protocol.wire import ENGINE_STATUS
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.views.settings.calls import Calls
from app.window.views.settings.page import SettingsPage
from app.window.widgets.text_label import TextLabel

_LICENCES = "Apache-2.0. Icons by Lucide (ISC). Qt by The Qt Company (LGPL-3.0)."


class AboutPage(SettingsPage):
    def __init__(self, theme: Theme, calls: Calls) -> None:
        super().__init__(theme, "About", "Errand hands work to AI agents, and keeps you in charge of it.")
        self._calls = calls
        self._place = QWidget()
        self._facts = QFormLayout(self._place)
        self._facts.setContentsMargins(0, 0, 0, 0)
        self._facts.setHorizontalSpacing(theme.tokens.space_wide)
        self._facts.setVerticalSpacing(theme.tokens.space_close)
        self._facts.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        self.rows.addWidget(self._place)
        again = push_button("Measure again")
        again.clicked.connect(self.load)
        self.rows.addWidget(again, 0, Qt.AlignmentFlag.AlignLeft)

    def load(self) -> None:
        self._calls.spawn(self._load(), self.tell_failure)

    async def _load(self) -> None:
        self._show(await self._calls.call(ENGINE_STATUS, EmptyParams()))

    def _show(self, status: EngineStatusResult) -> None:
        while self._facts.rowCount():
            self._facts.removeRow(0)
        self._add("Version", status.version)
        self._add("Licence", _LICENCES)
        self._add("Data folder", status.data_dir, mono=True)
        self._add("Database", status.database, mono=True)
        self._add("Engine", f"process {status.pid}, since {status.started_at.astimezone():%H:%M}")
        self._add("Memory", f"{status.memory_bytes / 1e6:.0f} MB")
        self._add("Processor time", f"{status.cpu_seconds:.1f} s")
        self._add("Running tasks", str(status.running_tasks))

    def _add(self, name: str, text: str, *, mono: bool = False) -> None:
        label = TextLabel(self.theme, name, tone="muted")
        self._facts.addRow(label, TextLabel(self.theme, text, mono=mono, wrap=True))
