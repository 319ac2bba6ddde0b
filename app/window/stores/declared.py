"""The settings that the engine declares, by name and title, for finding one."""

from PySide6.QtCore import QObject, Signal

from app.protocol.settings import SettingsGetParams
from app.protocol.wire import SETTINGS_GET
from app.window.stores.session import Session


class DeclaredStore(QObject):
    """`found` gives a tuple of `Setting` after each `load` that the engine answers."""

    found = Signal(object)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def load(self) -> None:
        if self._session.state == "ready":
            self._session.spawn(self._load())

    async def _load(self) -> None:
        self.found.emit((await self._session.call(SETTINGS_GET, SettingsGetParams())).settings)
