"""The settings dialog: page names on the left, the page on the right; and the About page."""

from functools import partial
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QSize, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QShowEvent
from PySide6.QtWidgets import QDialog, QListWidget, QListWidgetItem, QStackedWidget, QWidget

from errand.client.number_format import duration
from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_STATUS, EngineStatusResult
from errand.text.translation import tr
from errand.window.stores.catalog import ModelStore
from errand.window.stores.stores import Stores
from errand.window.theme.style import push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.views.settings.engine_settings_page import EngineSettingsPageView
from errand.window.views.settings.page import EngineCalls, SettingsPageView
from errand.window.views.shared.actions import ShortcutStore
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_hbox
from errand.window.widgets.dialogs import bring_to_front, resize_on_screen
from errand.window.widgets.forms.form import form
from errand.window.widgets.labels import TextLabel

if TYPE_CHECKING:
    from errand.window.views.settings.licences_dialog import LicencesDialog
    from errand.window.views.settings.providers.page import ProvidersPageView

_LICENCES = tr("Apache-2.0. Icons by Lucide (ISC). Qt by The Qt Company (LGPL-3.0).")

PageName = Literal[
    "general",
    "providers",
    "local_models",
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
    ("general", tr("General"), "sliders-horizontal"),
    ("providers", tr("Models and keys"), "key-round"),
    ("local_models", tr("Local models"), "download"),
    ("personalities", tr("Personalities"), "users"),
    ("permissions", tr("Permissions"), "shield-question-mark"),
    ("tools", tr("Tools"), "wrench"),
    ("skills", tr("Skills"), "file-text"),
    ("appearance", tr("Appearance"), "palette"),
    ("shortcuts", tr("Shortcuts"), "keyboard"),
    ("data", tr("Data"), "database"),
    ("about", tr("About"), "info"),
)
PAGE_TITLES = tuple(title for _, title, _ in _PAGES)
_WIDTH, _HEIGHT, _NAMES_WIDTH, _ROW_HEIGHT = 860, 620, 210, 32


class AboutPageView(SettingsPageView):
    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme, tr("About"), tr("Hand work to AI agents and stay in charge."))
        self._calls = calls
        self._facts_view = QWidget()
        self._facts = form(theme)
        self._facts_view.setLayout(self._facts)
        self.rows.addWidget(self._facts_view)
        again = push_button(tr("Refresh"))
        again.clicked.connect(self.load)
        licences = push_button(tr("Licences…"))
        licences.clicked.connect(self._show_licences)
        self.rows.addLayout(hbox(again, licences, STRETCH))
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
        self._add(tr("Version"), status.version)
        self._add(tr("Licence"), _LICENCES)
        self._add(tr("Data folder"), status.data_dir, mono=True)
        self._add(tr("Database"), status.database, mono=True)
        self._add(
            tr("Engine"),
            tr("process {pid}, since {time}").format(pid=status.pid, time=f"{status.started_at.astimezone():%H:%M}"),
        )
        self._add(tr("Memory used"), f"{status.memory_bytes / 1e6:.0f} MB")
        self._add(tr("CPU time"), duration(status.cpu_seconds))
        self._add(tr("Running tasks"), str(status.running_tasks))

    def _add(self, name: str, text: str, *, mono: bool = False) -> None:
        label = TextLabel(self.theme, name, tone="muted")
        self._facts.addRow(label, TextLabel(self.theme, text, mono=mono, wrap=True))


class SettingsDialog(QDialog):
    """A page loads its state from the engine each time it is shown. Not modal; `open_page` shows it with a page.

    `memory_requested` asks for the window of memory; `models_changed` says that other models can be chosen.
    """

    memory_requested = Signal()
    models_changed = Signal()

    def __init__(
        self,
        stores: Stores,
        models: ModelStore,
        theme: Theme,
        shortcuts: ShortcutStore,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._stores = stores
        self._models = models
        self._shortcuts = shortcuts
        self._theme = theme
        self.setWindowTitle(tr("Settings"))
        resize_on_screen(self, theme.pixels(_WIDTH), theme.pixels(_HEIGHT))
        self._names = QListWidget()
        self._stack = QStackedWidget()
        self._made: dict[PageName, SettingsPageView] = {}
        self._add_names()
        set_hbox(self, self._panel(), fill(self._stack), spacing=0)
        self._names.currentRowChanged.connect(self._on_page_chosen)
        theme.changed.connect(self._on_theme_changed)
        self._names.setCurrentRow(0)

    def open_page(self, name: PageName) -> None:
        """Show the dialog with this page."""
        self._names.setCurrentRow([page for page, _, _ in _PAGES].index(name))
        bring_to_front(self)

    def add_provider(self) -> None:
        """Show the form for a new provider."""
        self.open_page("providers")
        page = self._page("providers")
        assert isinstance(page, _providers_page())
        page.add_provider()

    def open_setting(self, name: str) -> None:
        """Show a declared setting and focus its field."""
        self.open_page("general")
        page = self._page("general")
        assert isinstance(page, EngineSettingsPageView)
        page.go_to(name)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        for page in self._made.values():
            page.reset()
        self._show_page(self._names.currentRow())

    def _page(self, name: PageName) -> SettingsPageView:
        """Made when it is first shown."""
        if name not in self._made:
            self._made[name] = page = self._make_page(name)
            self._stack.addWidget(page)
        return self._made[name]

    def _make_page(self, name: PageName) -> SettingsPageView:
        theme, stores, calls = self._theme, self._stores, self._stores.session
        match name:
            case "general":
                general = EngineSettingsPageView(theme, calls, self._models)
                general.models_changed.connect(self.models_changed)
                general.providers_requested.connect(partial(self.open_page, "providers"))
                return general
            case "providers":
                page = _providers_page()(theme, calls)
                page.models_changed.connect(self.models_changed)
                page.local_models_requested.connect(partial(self.open_page, "local_models"))
                return page
            case "local_models":
                from errand.window.views.settings.local_models_page import LocalModelsPageView

                return LocalModelsPageView(theme, stores.local_models)
            case "personalities":
                from errand.window.views.settings.personalities_page import PersonalitiesPageView

                personalities = PersonalitiesPageView(theme, stores.personalities, self._models)
                personalities.providers_requested.connect(partial(self.open_page, "providers"))
                return personalities
            case "permissions":
                from errand.window.views.settings.grants_page import GrantsPageView

                return GrantsPageView(theme, stores.grants, calls)
            case "tools":
                from errand.window.views.settings.tools_page import ToolsPageView

                return ToolsPageView(theme, stores.tools, stores.personalities, calls, _open_link)
            case "skills":
                from errand.window.views.settings.skills_page import SkillsPageView

                return SkillsPageView(theme, calls)
            case "appearance":
                from errand.window.views.settings.appearance_page import AppearancePageView

                return AppearancePageView(theme)
            case "shortcuts":
                from errand.window.views.settings.shortcuts_page import ShortcutsPageView

                return ShortcutsPageView(theme, self._shortcuts)
            case "data":
                from errand.window.views.settings.data.page import DataPageView

                data = DataPageView(theme, calls)
                data.memory_requested.connect(self.memory_requested)
                return data
            case "about":
                return AboutPageView(theme, calls)

    def _add_names(self) -> None:
        self._names.setAccessibleName(tr("Settings pages"))
        self._names.setIconSize(QSize(self._theme.tokens.icon_small, self._theme.tokens.icon_small))
        for title in PAGE_TITLES:
            item = QListWidgetItem(title)
            item.setSizeHint(QSize(0, self._theme.pixels(_ROW_HEIGHT)))
            self._names.addItem(item)
        self._on_theme_changed()

    def _panel(self) -> QWidget:
        panel = QWidget()
        panel.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        panel.setFixedWidth(self._theme.pixels(_NAMES_WIDTH))
        set_style(panel, "look", "panel")
        space = self._theme.tokens.space_close
        set_hbox(panel, self._names, margins=(space, self._theme.tokens.space_wide, space, space))
        return panel

    def _on_page_chosen(self, row: int) -> None:
        if self.isVisible():
            self._show_page(row)

    def _show_page(self, row: int) -> None:
        page = self._page(_PAGES[row][0])
        self._stack.setCurrentWidget(page)
        page.load()

    def _on_theme_changed(self) -> None:
        for row, (_, _, icon) in enumerate(_PAGES):
            self._names.item(row).setIcon(self._theme.icon(icon, "muted"))


def _providers_page() -> "type[ProvidersPageView]":
    from errand.window.views.settings.providers.page import ProvidersPageView

    return ProvidersPageView


def _open_link(url: str) -> bool:
    """Open an address that a server names, if it is one of the web."""
    return QUrl(url).scheme() in ("http", "https") and QDesktopServices.openUrl(QUrl(url))
