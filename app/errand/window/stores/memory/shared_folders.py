"""Which folders share what memory has of them, and which entries agents are not given again."""

from collections.abc import Coroutine

from PySide6.QtCore import QObject, Signal

from errand.protocol.memory import (
    MEMORY_FOLDERS,
    MEMORY_GIVE,
    MEMORY_SHARE,
    MemoryFoldersParams,
    MemoryFoldersResult,
    MemoryGiveParams,
    MemoryShareParams,
    SharedFolders,
    ShareMode,
)
from errand.protocol.settings import SETTINGS_SET, SettingsSetParams
from errand.window.stores.session import EngineSession


class SharedFoldersStore(QObject):
    """`result` is None until the engine has answered. `changed` is emitted after every answer."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.result: MemoryFoldersResult | None = None

    def load(self) -> None:
        self._spawn(self._load())

    def set_mode(self, mode: ShareMode) -> None:
        """Decide about all folders that nothing else is decided about."""
        self._spawn(self._set_mode(mode))

    def share(self, pair: SharedFolders, shares: bool) -> None:
        self._spawn(self._share(pair, shares))

    def give_all_again(self) -> None:
        """Agents may be given all entries again."""
        self._spawn(self._give_all_again())

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        self._session.spawn(work, self.failed.emit)

    async def _load(self) -> None:
        self.result = await self._session.call(MEMORY_FOLDERS, MemoryFoldersParams())
        self.changed.emit()

    async def _set_mode(self, mode: ShareMode) -> None:
        await self._session.call(SETTINGS_SET, SettingsSetParams(name="other_folders", value=mode))
        await self._load()

    async def _share(self, pair: SharedFolders, shares: bool) -> None:
        choice = "share" if shares else "apart"
        params = MemoryShareParams(choice=choice, folder=pair.first, other=pair.second)
        await self._session.call(MEMORY_SHARE, params)
        await self._load()

    async def _give_all_again(self) -> None:
        for node_id in self.result.not_given if self.result is not None else ():
            await self._session.call(MEMORY_GIVE, MemoryGiveParams(node_id=node_id, again=True))
        await self._load()
