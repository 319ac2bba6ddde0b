"""What a person decides about memory below a message: which folders share it, and what is not given again."""

from PySide6.QtCore import QObject, Signal, SignalInstance

from errand.protocol.memory import (
    MEMORY_FOLDERS,
    MEMORY_GIVE,
    MEMORY_SHARE,
    MemoryFoldersParams,
    MemoryGiveParams,
    MemoryShareParams,
    ShareChoice,
)
from errand.window.stores.conversation.commands import TaskCommands
from errand.window.stores.session import EngineSession


class RecallCommands(QObject):
    """Emits `changed` when something was decided. `commands.failed` reports a refused command.

    What was decided elsewhere is asked for once, when a row first needs it.
    """

    _changed = Signal()

    def __init__(self, session: EngineSession, commands: TaskCommands) -> None:
        super().__init__()
        self._session = session
        self._commands = commands
        self._is_asked = False
        self._shares_all = False
        self._decisions: dict[frozenset[str], ShareChoice] = {}
        self._not_given: set[str] = set()

    @property
    def changed(self) -> SignalInstance:
        return self._changed

    def decision(self, folder: str, other: str) -> ShareChoice | None:
        """Return what holds for two folders; None if the person did not share them, nor said no."""
        if not self._is_asked:
            self._is_asked = True
            self._session.spawn(self._load(), self._commands.failed.emit)
        return "share_all" if self._shares_all else self._decisions.get(frozenset((folder, other)))

    def share(self, folder: str, other: str, choice: ShareChoice) -> None:
        self._session.spawn(self._share(folder, other, choice), self._commands.failed.emit)

    def is_given(self, node_id: str) -> bool:
        return node_id not in self._not_given

    def give(self, node_id: str, *, again: bool) -> None:
        self._session.spawn(self._give(node_id, again), self._commands.failed.emit)

    async def _load(self) -> None:
        result = await self._session.call(MEMORY_FOLDERS, MemoryFoldersParams())
        self._shares_all = result.mode == "share"
        for pair in result.pairs:
            if pair.shares:
                self._decisions.setdefault(frozenset((pair.first, pair.second)), "share")
        self._not_given.update(result.not_given)
        self._changed.emit()

    async def _share(self, folder: str, other: str, choice: ShareChoice) -> None:
        params = MemoryShareParams(choice=choice, folder=folder, other=other)
        await self._session.call(MEMORY_SHARE, params)
        self._shares_all = self._shares_all or choice == "share_all"
        self._decisions[frozenset((folder, other))] = choice
        self._changed.emit()

    async def _give(self, node_id: str, again: bool) -> None:
        await self._session.call(MEMORY_GIVE, MemoryGiveParams(node_id=node_id, again=again))
        if again:
            self._not_given.discard(node_id)
        else:
            self._not_given.add(node_id)
        self._changed.emit()
