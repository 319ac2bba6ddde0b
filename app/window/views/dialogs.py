"""The dialogs of the window, each made when it is first opened: the start does not wait for what it does not show."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.window.shortcuts import Shortcuts
from app.window.stores.session import Session
from app.window.theme.theme import Theme

if TYPE_CHECKING:
    from app.window.views.settings.dialog import PageName, SettingsDialog


class Dialogs(QObject):
    """`settings_closed` when a key may have been set."""

    settings_closed = Signal()

    def __init__(self, session: Session, theme: Theme, shortcuts: Shortcuts, window: QWidget) -> None:
        super().__init__(window)
        self._session = session
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
            self._settings = SettingsDialog(self._session, self._theme, self._shortcuts, self._window)
            self._settings.finished.connect(self.settings_closed)
        return self._settings

    def open_shortcuts(self) -> None:
        from app.window.views.shortcut_sheet import ShortcutDialog

        ShortcutDialog(self._theme, self._shortcuts, self._window).open()
