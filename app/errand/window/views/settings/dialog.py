"""The settings dialog: page names on the left, the page on the right; and the About page."""

from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QSize, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QShowEvent
from PySide6.QtWidgets import QDialog, QFormLayout, QHBoxLayout, QListWidget, QListWidgetItem, QStackedWidget, QWidget

from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_STATUS, EngineStatusResult
from errand.window.stores.stores import Stores
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.views.settings.appearance_page import AppearancePageView
from errand.window.views.settings.data.page import DataPageView
from errand.window.views.settings.engine_settings_page import EngineSettingsPageView
from errand.window.views.settings.grants_page import GrantsPageView
from errand.window.views.settings.page import EngineCalls, SettingsPageView
from errand.window.views.settings.personalities_page import PersonalitiesPageView
from errand.window.views.settings.providers_page import ProvidersPageView
from errand.window.views.settings.shortcuts_page import ShortcutsPageView
from errand.window.views.settings.skills_page import SkillsPageView
from errand.window.views.settings.tools_page import ToolsPageView
from errand.window.views.shared.actions import ShortcutStore
from errand.window.widgets.labels import TextLabel

if TYPE_CHECKING:
    from errand.window.views.settings.licences_dialog import LicencesDialog

_LICENCES = "Apache-2.0. Icons by Lucide (ISC). Qt by The Qt Company (LGPL-3.0)."

PageName = Literal[
    "general",
    "providers",
    "personalities",
    "permissions",
    "tools",
    "skills",
    "appearance",
    "shortcuts",
    "data",
    "about",
]
_PAGES: tuple[tuple[PageName, str, str], ...] = (
    ("general", "General", "sliders-horizontal"),
    ("providers", "Models and keys", "key-round"),
    ("personalities", "Personalities", "users"),
    ("permissions", "Permissions", "shield-question-mark"),
    ("tools", "Tools", "wrench"),
    ("skills", "Skills", "file-text"),
    ("appearance", "Appearance", "palette"),
    ("shortcuts", "Shortcuts", "keyboard"),
    ("data", "Data", "database"),
    ("about", "About", "info"),
)
_WIDTH, _HEIGHT, _NAMES_WIDTH, _ROW_HEIGHT = 860, 620, 190, 32


class AboutPageView(SettingsPageView):
    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme, "About", "Errand hands work to AI agents, and keeps you in charge of it.")
        self._calls = calls
        self._facts_view = QWidget()
        self._facts = QFormLayout(self._facts_view)
        self._facts.setContentsMargins(0, 0, 0, 0)
        self._facts.setHorizontalSpacing(theme.tokens.space_wide)
        self._facts.setVerticalSpacing(theme.tokens.space_close)
        self._facts.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        self.rows.addWidget(self._facts_view)
        again = push_button("Measure again")
        again.clicked.connect(self.load)
        licences = push_button("Licences of libraries …")
        licences.clicked.connect(self._show_licences)
        buttons = QHBoxLayout()
        buttons.addWidget(again)
        buttons.addWidget(licences)
        buttons.addStretch(1)
        self.rows.addLayout(buttons)
        self.licences: LicencesDialog | None = None

    def load(self) -> None:
        self._calls.spawn(self._load(), self.show_failure)

    def _show_licences(self) -> None:
        from errand.window.views.settings.licences_dialog import LicencesDialog

        if self.licences is None:
            self.licences = LicencesDialog(self.theme, self)
            self.licences.load(self._calls)
        self.licences.show()
        self.licences.raise_()

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


class SettingsDialog(QDialog):
    """A page loads its state from the engine each time it is shown. Not modal; `open_page` shows it with a page.

    `memory_requested` asks for the window of memory.
    """

    memory_requested = Signal()

    def __init__(self, stores: Stores, theme: Theme, shortcuts: ShortcutStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        calls = stores.session
        self._theme = theme
        self.setWindowTitle("Settings")
        self.resize(_WIDTH, _HEIGHT)
        self._names = QListWidget()
        self._stack = QStackedWidget()
        self._declared = EngineSettingsPageView(theme, calls)
        data = DataPageView(theme, calls)
        data.memory_requested.connect(self.memory_requested)
        self._pages: tuple[SettingsPageView, ...] = (
            self._declared,
            ProvidersPageView(theme, calls),
            PersonalitiesPageView(theme, stores.personalities),
            GrantsPageView(theme, stores.grants, calls),
            ToolsPageView(theme, stores.tools, stores.personalities, calls, _open_link),
            SkillsPageView(theme, calls),
            AppearancePageView(theme),
            ShortcutsPageView(theme, shortcuts),
            data,
            AboutPageView(theme, calls),
        )
        for page in self._pages:
            self._stack.addWidget(page)
        self._add_names()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self._panel())
        row.addWidget(self._stack, 1)
        self._names.currentRowChanged.connect(self._on_page_chosen)
        theme.changed.connect(self._on_theme_changed)
        self._names.setCurrentRow(0)

    def open_page(self, name: PageName) -> None:
        """Show the dialog with this page."""
        self._names.setCurrentRow([page for page, _, _ in _PAGES].index(name))
        self.show()
        self.raise_()
        self.activateWindow()

    def open_setting(self, name: str) -> None:
        """Show a declared setting and focus its field."""
        self.open_page("general")
        self._declared.go_to(name)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._pages[self._stack.currentIndex()].load()

    def _add_names(self) -> None:
        self._names.setAccessibleName("Pages of the settings")
        self._names.setIconSize(QSize(self._theme.tokens.icon_small, self._theme.tokens.icon_small))
        for _, title, _ in _PAGES:
            item = QListWidgetItem(title)
            item.setSizeHint(QSize(0, _ROW_HEIGHT))
            self._names.addItem(item)
        self._on_theme_changed()

    def _panel(self) -> QWidget:
        panel = QWidget()
        panel.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        panel.setFixedWidth(_NAMES_WIDTH)
        set_style(panel, "look", "panel")
        inside = QHBoxLayout(panel)
        space = self._theme.tokens.space_close
        inside.setContentsMargins(space, self._theme.tokens.space_wide, space, space)
        inside.addWidget(self._names)
        return panel

    def _on_page_chosen(self, row: int) -> None:
        self._stack.setCurrentIndex(row)
        if self.isVisible():
            self._pages[row].load()

    def _on_theme_changed(self) -> None:
        for row, (_, _, icon) in enumerate(_PAGES):
            self._names.item(row).setIcon(self._theme.icon(icon, "muted"))


def _open_link(url: str) -> bool:
    return QDesktopServices.openUrl(QUrl(url))
