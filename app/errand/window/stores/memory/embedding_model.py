"""The embedding model as the engine reports it: offered to the person, downloaded, there."""

from typing import Literal

from PySide6.QtCore import QObject, Signal

from errand.protocol.events import EmbeddingModelUpdate
from errand.protocol.memory import MEMORY_MODEL, EmbeddingModel, MemoryModelParams
from errand.window.stores.session import EngineSession


class EmbeddingModelStore(QObject):
    """`model` is None until the engine has reported it. `is_followed`: the person started a download and waits for it.

    `failed` is emitted with the reason if the engine refuses.
    """

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self.model: EmbeddingModel | None = None
        self.is_followed = False
        session.state_changed.connect(self._on_state_changed)

    def download(self) -> None:
        """Start or resume the download; its progress comes as changes."""
        self.is_followed = True
        self._order("download")

    def cancel(self) -> None:
        self._order("cancel")

    def decline(self) -> None:
        """Never offer it again."""
        self._order("decline")

    def stop_following(self) -> None:
        """The person has seen how the download ended."""
        self.is_followed = False
        self.changed.emit()

    def apply(self, event: EmbeddingModelUpdate) -> None:
        """Apply an event from the engine."""
        self.model = event.model
        self.changed.emit()

    def _on_state_changed(self) -> None:
        """Downloads end with the engine; another reports its own."""
        if self._session.state == "lost" and self.model is not None:
            self.model, self.is_followed = None, False
            self.changed.emit()

    def _order(self, action: Literal["download", "cancel", "decline"]) -> None:
        self._session.spawn(self._send(action), self.failed.emit)

    async def _send(self, action: Literal["download", "cancel", "decline"]) -> None:
        await self._session.call(MEMORY_MODEL, MemoryModelParams(action=action))
