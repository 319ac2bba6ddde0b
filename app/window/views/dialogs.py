"""The dialogs of the window, each made when it is first opened: the start does not wait for what it does not show."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QClipboard
from PySide6.QtWidgets import QWidget

from app.window.shortcuts import Shortcuts
from app.window.stores.stores import Stores
from app.window.theme.theme import Theme

if TYPE_CHECKING:
    from app.window.views.settings.dialog import PageName, SettingsDialog
    from app.window.views.usage.dialog import UsageDialog


class Dialogs(QObject):
    """`settings_closed` when a key may have been set; `conversation_asked` gives one to open."""

    settings_closed = Signal()
    conversation_asked = Signal(str)

    def __init__(
        self, stores: Stores, theme: Theme, shortcuts: Shortcuts, clipboard: QClipboard, window: QWidget
    ) -> None:
        super().__init__(window)
        self._clipboard = clipboard
        self._usage: UsageDialog | None = None
        self._stores = stores
        self._theme = theme
        self._shortcuts = shortcuts
        self._window = window
        self._settings: SettingsDialog | None = None

    def open_settings(self, page: "PageName" = "general") -> None:
        self._dialog().open_page(page)

    def open_setting(self, name: str) -> None:
        """One setting that the engine declares, the keyboard in its field."""
        self._dialog().open_setting(name)

    def open_providers(self) -> None:
        self.open_settings("providers")

    def _dialog(self) -> "SettingsDialog":
        from app.window.views.settings.dialog import SettingsDialog

        if self._settings is None:
            self._settings = SettingsDialog(self._stores, self._theme, self._shortcuts, self._window)
            self._settings.finished.connect(self.settings_closed)
        return self._settings

    def open_usage(self) -> None:
        from app.window.stores.usage import UsageStore
        from app.window.views.usage.dialog import UsageDialog

        if self._usage is None:
            store = UsageStore(self._stores.session, self._stores.tasks, self)
            self._usage = UsageDialog(store, self._theme, self._clipboard, self._window)
            self._usage.opened.connect(self.conversation_asked)
        self._usage.show()
        self._usage.raise_()
        self._usage.activateWindow()

    def open_shortcuts(self) -> None:
        from app.window.views.shortcut_sheet import ShortcutDialog

        ShortcutDialog(self._theme, self._shortcuts, self._window).open()
