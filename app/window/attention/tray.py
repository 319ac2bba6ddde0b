"""Errand in the system's tray, where there is one: how much waits, and the menu."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QSystemTrayIcon

from app.client.figures import count
from app.window.attention.tray_icon import tray_icon
from app.window.attention.tray_menu import TrayMenu
from app.window.stores.stores import Stores


class Tray(QObject):
    """`window_asked` at a click on the icon; what is chosen in the menu is told by `menu`."""

    window_asked = Signal()

    def __init__(self, stores: Stores) -> None:
        super().__init__()
        self._stores = stores
        self._waiting = -1
        self._words = ""
        self.menu = TrayMenu(stores)
        self.icon = QSystemTrayIcon(self)
        self.icon.setContextMenu(self.menu)
        self.icon.activated.connect(self._on_activated)
        stores.asks.changed.connect(self._on_changed)
        stores.tasks.taskUpdate.connect(self._on_changed)
        self._on_changed()
        self.icon.show()

    def close(self) -> None:
        """Gone from the tray before its process is: some desktops keep what was left there."""
        self.icon.hide()

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in (QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick):
            self.window_asked.emit()

    def _on_changed(self) -> None:
        waiting, running = len(self._stores.asks.waiting()), len(self._stores.tasks.running())
        words = _words(waiting, running)
        if words != self._words:  # each one goes over the bus
            self._words = words
            self.icon.setToolTip(words)
        if waiting != self._waiting:
            self._waiting = waiting
            self.icon.setIcon(tray_icon(waiting))


def _words(waiting: int, running: int) -> str:
    parts = [f"{waiting} waiting for you"] if waiting else []
    parts += [f"{count(running, 'task')} running"] if running else []
    return f"Errand: {', '.join(parts)}" if parts else "Errand"
