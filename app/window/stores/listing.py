"""A list of conversations as a view shows it: paged from the engine as it is scrolled, kept current by events."""

from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal

from app.protocol.conversations import Conversation, ConversationListParams, ConversationListResult
from app.protocol.wire import CONVERSATION_LIST
from app.window.stores.session import Session
from app.window.stores.shelf import Shelf

_PAGE = 100


class Listing(QObject):
    """Shelf after shelf, each newest change first. Only loaded ones can be asked for: `fetch_more` loads a page.

    `reset` says that all rows are new; `inserted(first, count)`, `removed(index)`, `moved(from, to)` and
    `updated(index)` come right after each change, and `changed` after any of these.
    """

    reset = Signal()
    inserted = Signal(int, int)
    removed = Signal(int)
    moved = Signal(int, int)
    updated = Signal(int)
    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: Session, shelves: tuple[Shelf, ...]) -> None:
        super().__init__()
        self._session = session
        self._shelves = shelves
        self._number = 0
        self._under_way = 0
        # The page that was asked for already, though the call may not have begun.
        self._asked: str | None = None
        # What events said while a page was on its way, which may be older; None for a deleted one.
        self._heard: dict[str, Conversation | None] = {}

    @property
    def is_loaded(self) -> bool:
        """False until the first pages are there."""
        return all(shelf.is_loaded for shelf in self._shelves)

    @property
    def has_more(self) -> bool:
        return any(shelf.cursor is not None for shelf in self._shelves)

    def count(self) -> int:
        return sum(map(len, self._shelves))

    def at(self, index: int) -> Conversation:
        for shelf in self._shelves:
            if index < len(shelf):
                return shelf.at(index)
            index -= len(shelf)
        raise IndexError(index)

    def get(self, conversation_id: str) -> Conversation | None:
        """One of the loaded ones."""
        return next((found for shelf in self._shelves if (found := shelf.get(conversation_id)) is not None), None)

    def index_of(self, conversation_id: str) -> int | None:
        """Where it stands, if it is loaded."""
        before = 0
        for shelf in self._shelves:
            index = shelf.index_of(conversation_id)
            if index is not None:
                return before + index
            before += len(shelf)
        return None

    def load(self) -> None:
        """Read the first pages anew."""
        self._session.spawn(self._load(), self.failed.emit)

    def fetch_more(self) -> None:
        shelf = next((shelf for shelf in self._shelves if shelf.cursor is not None), None)
        if shelf is not None and not self._under_way and shelf.cursor != self._asked:
            self._asked = shelf.cursor
            self._session.spawn(self._fetch_more(shelf), self.failed.emit)

    def put(self, conversation: Conversation) -> None:
        """Take a state that the engine sent."""
        if self._under_way:
            self._heard[conversation.id] = conversation
        if self.get(conversation.id) != conversation:
            self._change(conversation.id, conversation)

    def drop(self, conversation_id: str) -> None:
        """It is gone for good."""
        if self._under_way:
            self._heard[conversation_id] = None
        self._change(conversation_id, None)

    async def _load(self) -> None:
        from asyncio import gather  # the first paint does not wait for asyncio

        self._number += 1
        number, self._asked = self._number, None
        pages = await gather(*(self._page(shelf, None) for shelf in self._shelves))
        if number != self._number:
            return  # it is being read anew already
        for shelf, page in zip(self._shelves, pages, strict=True):
            shelf.clear()
            shelf.add(page)
        self._take_heard()
        self.reset.emit()

    async def _fetch_more(self, shelf: Shelf) -> None:
        cursor = shelf.cursor
        try:
            page = await self._page(shelf, cursor)
        finally:
            self._asked = None
        if cursor != shelf.cursor:
            return  # the list was read anew meanwhile
        first = self._start_of(shelf) + len(shelf)
        count = shelf.add(page)
        if count:
            self.inserted.emit(first, count)
            self.changed.emit()
        for conversation_id, conversation in tuple(self._heard.items()):
            self._change(conversation_id, conversation)

    async def _page(self, shelf: Shelf, cursor: str | None) -> ConversationListResult:
        if not self._under_way:
            self._heard.clear()
        self._under_way += 1
        params = ConversationListParams(archived=shelf.archived, pinned=shelf.pinned, cursor=cursor, limit=_PAGE)
        try:
            return await self._session.call(CONVERSATION_LIST, params)
        finally:
            self._under_way -= 1

    def _take_heard(self) -> None:
        for conversation_id, conversation in self._heard.items():
            for shelf in self._shelves:
                shelf.remove(conversation_id)
                if conversation is not None:
                    shelf.put(conversation)

    def _change(self, conversation_id: str, conversation: Conversation | None) -> None:
        old = self.index_of(conversation_id)
        for shelf in self._shelves:
            shelf.remove(conversation_id)
            if conversation is not None:
                shelf.put(conversation)
        new = self.index_of(conversation_id)
        if new is None and old is None:
            return
        if new is None or old is None:
            self.inserted.emit(new, 1) if old is None else self.removed.emit(old)
        else:
            if new != old:
                self.moved.emit(old, new)
            self.updated.emit(new)
        self.changed.emit()

    def _start_of(self, shelf: Shelf) -> int:
        before: Iterable[Shelf] = self._shelves[: self._shelves.index(shelf)]
        return sum(map(len, before))
