"""The loaded conversations of one kind, newest change first, and where the next page of them begins."""

from bisect import bisect_left, insort
from datetime import datetime
from typing import TypeAlias

from app.protocol.conversations import Conversation, ConversationListResult

_Place: TypeAlias = tuple[datetime, str]


class Shelf:
    """`pinned` None holds both. `cursor` is None where nothing more is to be read."""

    def __init__(self, *, archived: bool = False, pinned: bool | None = None) -> None:
        self.archived = archived
        self.pinned = pinned
        self.is_loaded = False
        self.cursor: str | None = None
        self._held: dict[str, Conversation] = {}
        self._order: list[_Place] = []  # oldest first, so that the newest is put at the end
        self._end: _Place | None = None  # of the pages that are loaded

    def __len__(self) -> int:
        return len(self._order)

    def at(self, index: int) -> Conversation:
        return self._held[self._order[-1 - index][1]]

    def get(self, conversation_id: str) -> Conversation | None:
        return self._held.get(conversation_id)

    def index_of(self, conversation_id: str) -> int | None:
        held = self._held.get(conversation_id)
        return None if held is None else len(self._order) - 1 - bisect_left(self._order, _place_of(held))

    def clear(self) -> None:
        self._held.clear()
        self._order.clear()
        self._end = self.cursor = None

    def add(self, page: ConversationListResult) -> int:
        """Put the next page at the end; how many of it are new here."""
        self.is_loaded = True
        self.cursor = page.next_cursor
        if page.conversations:
            self._end = _place_of(page.conversations[-1])
        before = len(self._order)
        for conversation in page.conversations:
            if conversation.id not in self._held:  # an event was newer than the page
                self._held[conversation.id] = conversation
                insort(self._order, _place_of(conversation))
        return len(self._order) - before

    def put(self, conversation: Conversation) -> None:
        """Nothing happens when it is of another kind, or belongs to a page that is not loaded."""
        place = _place_of(conversation)
        is_here = conversation.archived == self.archived and self.pinned in (None, conversation.pinned)
        is_later = self.cursor is not None and self._end is not None and place < self._end
        if self.is_loaded and is_here and not is_later:
            self._held[conversation.id] = conversation
            insort(self._order, place)

    def remove(self, conversation_id: str) -> None:
        held = self._held.pop(conversation_id, None)
        if held is not None:
            del self._order[bisect_left(self._order, _place_of(held))]


def _place_of(conversation: Conversation) -> _Place:
    return conversation.updated_at, conversation.id
