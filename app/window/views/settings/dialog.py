"""The settings dialog: the pages' names on the left, the page on the right."""

from typing import Literal

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QListWidget, QListWidgetItem, QStackedWidget, QWidget

from app.window.shortcuts import Shortcuts
from app.window.stores.stores import Stores
from app.window.theme.look import set_look
from app.window.theme.theme import Theme
from app.window.views.settings.about_page import AboutPage
from app.window.views.settings.appearance_page import AppearancePage
from app.window.views.settings.data_page import DataPage
from app.window.views.settings.declared_page import DeclaredPage
from app.window.views.settings.grants_page import GrantsPage
from app.window.views.settings.page import SettingsPage
from app.window.views.settings.personalities_page import PersonalitiesPage
from app.window.views.settings.providers_page import ProvidersPage
from app.window.views.settings.shortcuts_page import ShortcutsPage

PageName = Literal["general", "providers", "personalities", "permissions", "appearance", "shortcuts", "data", "about"]
_PAGES: tuple[tuple[PageName, str, str], ...] = (
    ("general", "General", "sliders-horizontal"),
    ("providers", "Models and keys", "key-round"),
    ("personalities", "Personalities", "users"),
    ("permissions", "Permissions", "shield-question-mark"),
    ("appearance", "Appearance", "palette"),
    ("shortcuts", "Shortcuts", "keyboard"),
    ("data", "Data", "database"),
    ("about", "About", "info"),
)
_WIDTH, _HEIGHT, _NAMES_WIDTH, _ROW_HEIGHT = 860, 620, 190, 32


class SettingsDialog(QDialog):
    """A page asks the engine for its state each time it is shown. Not modal: `show` it, `open_page` chooses."""

    def __init__(self, stores: Stores, theme: Theme, shortcuts: Shortcuts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        calls = stores.session
        self._theme = theme
        self.setWindowTitle("Settings")
        self.resize(_WIDTH, _HEIGHT)
        self._names = QListWidget()
        self._stack = QStackedWidget()
        self._declared = DeclaredPage(theme, calls)
        self._pages: tuple[SettingsPage, ...] = (
            self._declared,
            ProvidersPage(theme, calls),
            PersonalitiesPage(theme, stores.personalities),
            GrantsPage(theme, stores.grants),
            AppearancePage(theme),
            ShortcutsPage(theme, shortcuts),
            DataPage(theme, calls),
            AboutPage(theme, calls),
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
        """Show the dialog with this page in front."""
        self._names.setCurrentRow([page for page, _, _ in _PAGES].index(name))
        self.show()
        self.raise_()
        self.activateWindow()

    def open_setting(self, name: str) -> None:
        """Show a declared setting, the keyboard in its field."""
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
        set_look(panel, "look", "panel")
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
