"""Conversations found by their titles while one types, beyond those that the list has loaded."""

from PySide6.QtCore import QObject, Signal

from app.protocol.conversations import ConversationSearchParams
from app.protocol.wire import CONVERSATION_SEARCH
from app.window.stores.session import Session

_SHORTEST = 2


class TitleStore(QObject):
    """`found` gives a tuple of `Conversation` for the text that was asked for last."""

    found = Signal(object)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._asked = ""

    def search(self, text: str) -> None:
        """One letter finds too much; while the engine is away nothing is found."""
        self._asked = text.strip()
        if len(self._asked) >= _SHORTEST and self._session.state == "ready":
            self._session.spawn(self._search(self._asked))

    async def _search(self, text: str) -> None:
        found = await self._session.call(CONVERSATION_SEARCH, ConversationSearchParams(text=text))
        if text == self._asked:
            self.found.emit(found.titles)
