"""Says in the window's title, on its badge and by the task bar's alert how much waits."""

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from app.client.characters import plain
from app.window.stores.stores import Stores
from app.window.views.main_window import MainWindow

_ALERT_MS = 0  # until the window is looked at


class Title(QObject):
    """`(2) Errand — title of the conversation in front`. A window of a conversation's own says its own."""

    def __init__(self, application: QApplication, window: MainWindow, stores: Stores) -> None:
        super().__init__(window)
        self._application = application
        self._window = window
        self._stores = stores
        self._waiting: frozenset[str] = frozenset()
        stores.asks.changed.connect(self._on_asks_changed)
        stores.conversations.changed.connect(self._show)
        stores.conversations.reset.connect(self._show)
        window.pages.front_changed.connect(self._show)
        self._on_asks_changed()

    def _on_asks_changed(self) -> None:
        waiting = frozenset(ask.id for ask in self._stores.asks.waiting())
        if waiting - self._waiting and self._application.activeWindow() is None:
            self._application.alert(self._window, _ALERT_MS)
        self._waiting = waiting
        self._application.setBadgeNumber(len(waiting))
        self._show()

    def _show(self) -> None:
        waits = f"({len(self._waiting)}) " if self._waiting else ""
        known = self._stores.conversations.get(self._window.pages.front_id)
        title = " ".join(plain(known.title).split()) if known else ""
        self._window.setWindowTitle(f"{waits}Errand — {title}" if title else f"{waits}Errand")
