"""The list of conversations, newest change first: paged from the engine as it is scrolled, kept current by events."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias

from PySide6.QtCore import QObject, Signal

from app.protocol.conversations import (
    Conversation,
    ConversationChangeParams,
    ConversationListParams,
    ConversationSearchParams,
)
from app.protocol.wire import CONVERSATION_CHANGE, CONVERSATION_LIST, CONVERSATION_SEARCH
from app.window.stores.session import Session

_PAGE = 100
_MOST_HITS = 50

_Place: TypeAlias = tuple[datetime, str]


class ConversationsStore(QObject):
    """`reset` says that the list is another one, `changed` that some of it is; `found` gives a tuple of `SearchHit`.

    Only loaded ones can be asked for: `fetch_more` loads the next page while `has_more`.
    """

    reset = Signal()
    changed = Signal()
    found = Signal(object)
    failed = Signal(str)

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._loaded: dict[str, Conversation] = {}
        self._order: list[_Place] = []  # oldest first, so that the newest is put at the end
        self._cursor: str | None = None
        self._is_fetching = False
        self._searched = 0

    @property
    def has_more(self) -> bool:
        return self._cursor is not None

    def count(self) -> int:
        return len(self._order)

    def at(self, index: int) -> Conversation:
        return self._loaded[self._order[-1 - index][1]]

    def get(self, conversation_id: str) -> Conversation | None:
        """One of the loaded ones."""
        return self._loaded.get(conversation_id)

    def load(self) -> None:
        """Read the first page anew."""
        self._session.spawn(self._load(), self.failed.emit)

    def fetch_more(self) -> None:
        if self._cursor is not None and not self._is_fetching:
            self._is_fetching = True
            self._session.spawn(self._fetch_more(self._cursor), self.failed.emit)

    def search(self, text: str) -> None:
        """Find `text` in all messages. A newer search makes an older one void; an empty text finds nothing."""
        self._searched += 1
        if text.strip():
            self._session.spawn(self._search(text, self._searched), self.failed.emit)
        else:
            self.found.emit(())

    def rename(self, conversation_id: str, title: str) -> None:
        self._change(ConversationChangeParams(conversation_id=conversation_id, title=title))

    def archive(self, conversation_id: str, archived: bool = True) -> None:
        self._change(ConversationChangeParams(conversation_id=conversation_id, archived=archived))

    def pin(self, conversation_id: str, pinned: bool = True) -> None:
        self._change(ConversationChangeParams(conversation_id=conversation_id, pinned=pinned))

    def put(self, conversation: Conversation) -> None:
        """Take a state that the engine sent."""
        if self._loaded.get(conversation.id) == conversation:
            return
        was_loaded = self._remove(conversation.id)
        if self._place(conversation) or was_loaded:
            self.changed.emit()

    def drop(self, conversation_id: str) -> None:
        """It is gone for good."""
        if self._remove(conversation_id):
            self.changed.emit()

    async def _load(self) -> None:
        page = await self._session.call(CONVERSATION_LIST, ConversationListParams(limit=_PAGE))
        newest = max(map(_place_of, page.conversations), default=None)
        # What came by an event while the page was on its way.
        newer = [known for known in self._loaded.values() if newest is not None and _place_of(known) > newest]
        self._loaded.clear()
        self._order.clear()
        self._cursor = page.next_cursor
        self._add((*newer, *page.conversations))
        self.reset.emit()

    async def _fetch_more(self, cursor: str) -> None:
        try:
            page = await self._session.call(CONVERSATION_LIST, ConversationListParams(limit=_PAGE, cursor=cursor))
        finally:
            self._is_fetching = False
        if self._cursor == cursor:  # else the list was read anew meanwhile
            self._cursor = page.next_cursor
            self._add(page.conversations)
            self.changed.emit()

    async def _search(self, text: str, number: int) -> None:
        result = await self._session.call(CONVERSATION_SEARCH, ConversationSearchParams(text=text, limit=_MOST_HITS))
        if number == self._searched:
            self.found.emit(result.hits)

    def _change(self, params: ConversationChangeParams) -> None:
        self._session.spawn(self._send_change(params), self.failed.emit)

    async def _send_change(self, params: ConversationChangeParams) -> None:
        await self._session.call(CONVERSATION_CHANGE, params)

    def _add(self, conversations: Iterable[Conversation]) -> None:
        for conversation in conversations:
            if conversation.id not in self._loaded:  # an event was newer than the page
                self._loaded[conversation.id] = conversation
                insort(self._order, _place_of(conversation))

    def _place(self, conversation: Conversation) -> bool:
        """False when it belongs to a page that is not loaded, or among the archived ones."""
        place = _place_of(conversation)
        if conversation.archived or (self.has_more and self._order and place < self._order[0]):
            return False
        self._loaded[conversation.id] = conversation
        insort(self._order, place)
        return True

    def _remove(self, conversation_id: str) -> bool:
        known = self._loaded.pop(conversation_id, None)
        if known is None:
            return False
        del self._order[bisect_left(self._order, _place_of(known))]
        return True


def _place_of(conversation: Conversation) -> _Place:
    return conversation.updated_at, conversation.id
