"""The background commands of an open conversation."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from errand.protocol.background import (
    BACKGROUND_INPUT,
    BACKGROUND_LIST,
    BACKGROUND_OUTPUT,
    BACKGROUND_STOP,
    BackgroundCommand,
    BackgroundInputParams,
    BackgroundListParams,
    BackgroundOutputParams,
    BackgroundStopParams,
)
from errand.window.stores.session import EngineSession

# The end of a long output is what people look for.
_SHOWN_BYTES = 200_000


class BackgroundStore(QObject):
    """`changed` when a command starts, prints or ends. `failed` has the reason of a refusal."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self._all: tuple[BackgroundCommand, ...] = ()

    @property
    def running(self) -> tuple[BackgroundCommand, ...]:
        """Oldest first."""
        return tuple(command for command in self._all if command.ended_at is None)

    def get(self, number: str) -> BackgroundCommand | None:
        return next((command for command in self._all if command.id == number), None)

    def load(self, conversation_id: str) -> None:
        self._session.spawn(self._load(conversation_id), self.failed.emit)

    def put(self, commands: tuple[BackgroundCommand, ...]) -> None:
        self._all = commands
        self.changed.emit()

    def stop(self, one: BackgroundCommand) -> None:
        params = BackgroundStopParams(conversation_id=one.conversation_id, id=one.id)
        self._session.send(BACKGROUND_STOP, params, self.failed.emit)

    def type_into(self, one: BackgroundCommand, text: str, key: str, failed: Callable[[str], None]) -> None:
        """Type a text and then a key, such as `enter`, into its terminal."""
        params = BackgroundInputParams(conversation_id=one.conversation_id, id=one.id, text=text, keys=(key,))
        self._session.send(BACKGROUND_INPUT, params, failed)

    def read(self, one: BackgroundCommand, show: Callable[[str], None]) -> None:
        """Pass the end of its output to `show`."""
        self._session.spawn(self._read(one, show), self.failed.emit)

    async def _load(self, conversation_id: str) -> None:
        params = BackgroundListParams(conversation_id=conversation_id)
        self.put((await self._session.call(BACKGROUND_LIST, params)).commands)

    async def _read(self, one: BackgroundCommand, show: Callable[[str], None]) -> None:
        params = BackgroundOutputParams(conversation_id=one.conversation_id, id=one.id, offset=-_SHOWN_BYTES)
        show((await self._session.call(BACKGROUND_OUTPUT, params)).text)
