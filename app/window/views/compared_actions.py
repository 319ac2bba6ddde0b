"""What blocks ask for while two branches are compared: all that looks and answers is done, nothing is branched."""

from PySide6.QtCore import QObject, Signal, SignalInstance

from app.protocol.asks import Remember
from app.protocol.conversations import Node
from app.window.views.block_links import ConversationActions

_WHY = "Go on with one of the two first: then it can be changed in the conversation."


class ComparedBranches(QObject):
    """Locked all the time; `refused` says so to who asks for more."""

    refused = Signal(str)
    _lock_changed = Signal()

    @property
    def lock_changed(self) -> SignalInstance:
        return self._lock_changed

    def locked(self) -> str:
        return _WHY

    def models(self) -> tuple[str, ...]:
        return ()

    def switch(self, node_id: str) -> None:
        self.refused.emit(_WHY)

    def fork(self, node_id: str) -> None:
        self.refused.emit(_WHY)

    def retry(self, node_id: str, model: str | None = None) -> None:
        self.refused.emit(_WHY)

    def edit(self, node_id: str) -> None:
        self.refused.emit(_WHY)

    def end_edit(self) -> None:
        """No message is a field here."""

    def resend(self, node: Node, text: str) -> None:
        self.refused.emit(_WHY)

    def draft(self, key: str, otherwise: str = "") -> str:
        return otherwise

    def keep_draft(self, key: str, text: str) -> None:
        """Nothing is typed here that would be kept."""


class ComparedActions:
    """`conversation` does what is not about branches."""

    def __init__(self, conversation: ConversationActions) -> None:
        self.branches = ComparedBranches()
        self.context = conversation.context
        self._conversation = conversation

    def open_link(self, url: str) -> None:
        self._conversation.open_link(url)

    def copy(self, text: str) -> None:
        self._conversation.copy(text)

    def answer(
        self, ask_id: str, *, text: str, allow: bool | None, remember: Remember, amount: float | None = None
    ) -> None:
        self._conversation.answer(ask_id, text=text, allow=allow, remember=remember, amount=amount)

    def load_older(self) -> None:
        """Both sides are whole."""
