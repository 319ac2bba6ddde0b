"""Notices by the tray icon, on systems without the desktop's own protocol: one line, and a click that opens."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QSystemTrayIcon

from app.window.attention.notice import OPEN, Notice


class Balloons(QObject):
    """Each is shown once; the system takes it away. Like `Notifications` to those who use it."""

    acted = Signal(str, str, str)

    def __init__(self, icon: QSystemTrayIcon) -> None:
        super().__init__(icon)
        self._icon = icon
        self._shown: dict[str, Notice] = {}
        self._newest = ""
        icon.messageClicked.connect(self._on_clicked)

    def show(self, wanted: tuple[Notice, ...]) -> None:
        """Those that are new among them."""
        for notice in wanted:
            if self._shown.get(notice.key) != notice:
                self._newest = notice.key
                self._icon.showMessage(notice.title, notice.body, self._icon.icon())
        self._shown = {notice.key: notice for notice in wanted}

    def _on_clicked(self) -> None:
        self.acted.emit(self._newest, OPEN, "")
