"""Conversation lists: paging, archive, search, title search, and operations on one conversation."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias

from PySide6.QtCore import QObject, Signal

from errand.client.number_format import file_size
from errand.protocol.conversations import (
    CONVERSATION_CHANGE,
    CONVERSATION_LIST,
    CONVERSATION_SEARCH,
    CONVERSATION_TREE,
    Conversation,
    ConversationChangeParams,
    ConversationListParams,
    ConversationListResult,
    ConversationSearchParams,
    ConversationSearchResult,
    ConversationTreeParams,
)
from errand.protocol.data import (
    CONVERSATION_DELETE,
    DATA_EXPORT,
    ConversationDeleteParams,
    DataExportParams,
    ExportFormat,
)
from errand.text.translation import tr
from errand.window.stores.session import EngineSession

_SortKey: TypeAlias = tuple[datetime, str]

_PAGE = 100

_MAX_HITS = 50

_MIN_QUERY = 2


class LoadedPages:
    """The loaded pages of one section. `pinned` None includes both; `cursor` None means that all pages are loaded."""

    def __init__(self, *, archived: bool = False, pinned: bool | None = None) -> None:
        self.archived = archived
        self.pinned = pinned
        self.is_loaded = False
        self.cursor: str | None = None
        self._conversations: dict[str, Conversation] = {}
        self._order: list[_SortKey] = []  # oldest first, so that the newest is appended
        self._end: _SortKey | None = None  # of the last loaded page

    def __len__(self) -> int:
        return len(self._order)

    def at(self, index: int) -> Conversation:
        return self._conversations[self._order[-1 - index][1]]

    def get(self, conversation_id: str) -> Conversation | None:
        return self._conversations.get(conversation_id)

    def index_of(self, conversation_id: str) -> int | None:
        conversation = self._conversations.get(conversation_id)
        return (
            None if conversation is None else len(self._order) - 1 - bisect_left(self._order, _sort_key(conversation))
        )

    def clear(self) -> None:
        self._conversations.clear()
        self._order.clear()
        self._end = self.cursor = None

    def add(self, page: ConversationListResult) -> int:
        """Append the next page; returns the number of conversations that were not known."""
        self.is_loaded = True
        self.cursor = page.next_cursor
        if page.conversations:
            self._end = _sort_key(page.conversations[-1])
        before = len(self._order)
        for conversation in page.conversations:
            if conversation.id not in self._conversations:  # otherwise an event was newer than the page
                self._conversations[conversation.id] = conversation
                insort(self._order, _sort_key(conversation))
        return len(self._order) - before

    def put(self, conversation: Conversation) -> None:
        """Insert a conversation, unless it belongs to another section or to a page that is not loaded."""
        sort_key = _sort_key(conversation)
        belongs_here = conversation.archived == self.archived and self.pinned in (None, conversation.pinned)
        is_later = self.cursor is not None and self._end is not None and sort_key < self._end
        if self.is_loaded and belongs_here and not is_later:
            self._conversations[conversation.id] = conversation
            insort(self._order, sort_key)

    def remove(self, conversation_id: str) -> None:
        conversation = self._conversations.pop(conversation_id, None)
        if conversation is not None:
            del self._order[bisect_left(self._order, _sort_key(conversation))]


def _sort_key(conversation: Conversation) -> _SortKey:
    return conversation.updated_at, conversation.id


class PagedListStore(QObject):
    """Sections in order, each sorted by change, newest first. `fetch_more` loads the next page.

    Emits `reset` when all rows are new; `inserted(first, count)`, `removed(index)`, `moved(from, to)` and
    `updated(index)` right after each change, and `changed` after any of these.
    """

    reset = Signal()
    inserted = Signal(int, int)
    removed = Signal(int)
    moved = Signal(int, int)
    updated = Signal(int)
    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession, groups: tuple[LoadedPages, ...]) -> None:
        super().__init__()
        self._session = session
        self._groups = groups
        self._load_number = 0
        self._is_loading = 0
        # The cursor of the page that was requested, even if the call has not started yet.
        self._requested_cursor: str | None = None
        # Events received while a page was loading, which may be older; None for a deleted conversation.
        self._deferred: dict[str, Conversation | None] = {}

    @property
    def is_loaded(self) -> bool:
        """True once the first pages are loaded."""
        return all(group.is_loaded for group in self._groups)

    @property
    def has_more(self) -> bool:
        return any(group.cursor is not None for group in self._groups)

    def count(self) -> int:
        return sum(map(len, self._groups))

    def at(self, index: int) -> Conversation:
        for group in self._groups:
            if index < len(group):
                return group.at(index)
            index -= len(group)
        raise IndexError(index)

    def get(self, conversation_id: str) -> Conversation | None:
        """Return a loaded conversation."""
        return next(
            (conversation for group in self._groups if (conversation := group.get(conversation_id)) is not None), None
        )

    def index_of(self, conversation_id: str) -> int | None:
        """Return the index of a conversation, if it is loaded."""
        before = 0
        for group in self._groups:
            index = group.index_of(conversation_id)
            if index is not None:
                return before + index
            before += len(group)
        return None

    def load(self) -> None:
        """Reload the first pages."""
        self._session.spawn(self._load(), self.failed.emit)

    def fetch_more(self) -> None:
        group = next((shelf for shelf in self._groups if shelf.cursor is not None), None)
        if group is not None and not self._is_loading and group.cursor != self._requested_cursor:
            self._requested_cursor = group.cursor
            self._session.spawn(self._fetch_more(group), self.failed.emit)

    def put(self, conversation: Conversation) -> None:
        """Store a conversation received from the engine."""
        if self._is_loading:
            self._deferred[conversation.id] = conversation
        if self.get(conversation.id) != conversation:
            self._change(conversation.id, conversation)

    def drop(self, conversation_id: str) -> None:
        """Remove a deleted conversation."""
        if self._is_loading:
            self._deferred[conversation_id] = None
        self._change(conversation_id, None)

    async def _load(self) -> None:
        from asyncio import gather  # import asyncio after the first paint

        self._load_number += 1
        number, self._requested_cursor = self._load_number, None
        pages = await gather(*(self._page(group, None) for group in self._groups))
        if number != self._load_number:
            return  # a newer load has started
        for shelf, page in zip(self._groups, pages, strict=True):
            shelf.clear()
            shelf.add(page)
        self._apply_deferred()
        self.reset.emit()

    async def _fetch_more(self, group: LoadedPages) -> None:
        cursor = group.cursor
        try:
            page = await self._page(group, cursor)
        finally:
            self._requested_cursor = None
        if cursor != group.cursor:
            return  # the list was reloaded
        first = self._start_of(group) + len(group)
        count = group.add(page)
        if count:
            self.inserted.emit(first, count)
            self.changed.emit()
        for conversation_id, conversation in tuple(self._deferred.items()):
            self._change(conversation_id, conversation)

    async def _page(self, group: LoadedPages, cursor: str | None) -> ConversationListResult:
        if not self._is_loading:
            self._deferred.clear()
        self._is_loading += 1
        params = ConversationListParams(archived=group.archived, pinned=group.pinned, cursor=cursor, limit=_PAGE)
        try:
            return await self._session.call(CONVERSATION_LIST, params)
        finally:
            self._is_loading -= 1

    def _apply_deferred(self) -> None:
        for conversation_id, conversation in self._deferred.items():
            for group in self._groups:
                group.remove(conversation_id)
                if conversation is not None:
                    group.put(conversation)

    def _change(self, conversation_id: str, conversation: Conversation | None) -> None:
        old = self.index_of(conversation_id)
        for group in self._groups:
            group.remove(conversation_id)
            if conversation is not None:
                group.put(conversation)
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

    def _start_of(self, group: LoadedPages) -> int:
        before: Iterable[LoadedPages] = self._groups[: self._groups.index(group)]
        return sum(map(len, before))


class ConversationListStore(PagedListStore):
    """Pinned conversations, then all others that are not archived. The view of `archived` loads it.

    Emits `searched` with a `ConversationSearchResult`, `counted` with the numbers of messages and tasks after
    `count_tree`, `archived_by_user` and `memory_switched` with the conversation that was changed here, `dropped` with
    the id of a deleted one, and `exported` with a text about the written file.
    """

    searched = Signal(object)
    counted = Signal(str, int, int)
    dropped = Signal(str)
    archived_by_user = Signal(object)
    memory_switched = Signal(object)
    exported = Signal(str)

    def __init__(self, session: EngineSession) -> None:
        super().__init__(session, (LoadedPages(pinned=True), LoadedPages(pinned=False)))
        self.archived = PagedListStore(session, (LoadedPages(archived=True),))
        self.archived.failed.connect(self.failed)
        self._search_number = 0

    def load(self) -> None:
        super().load()
        if self.archived.is_loaded:
            self.archived.load()

    def put(self, conversation: Conversation) -> None:
        super().put(conversation)
        self.archived.put(conversation)

    def drop(self, conversation_id: str) -> None:
        super().drop(conversation_id)
        self.archived.drop(conversation_id)
        self.dropped.emit(conversation_id)

    def search(self, text: str) -> None:
        """Search titles and messages.

        A newer search discards the result of an older one; an empty text finds nothing.
        """
        self._search_number += 1
        if text.strip():
            self._session.spawn(self._search(text, self._search_number), self.failed.emit)
        else:
            self.searched.emit(ConversationSearchResult(hits=()))

    def rename(self, conversation_id: str, title: str) -> None:
        self._send(ConversationChangeParams(conversation_id=conversation_id, title=title))

    def archive(self, conversation_id: str, archived: bool = True) -> None:
        self._send(ConversationChangeParams(conversation_id=conversation_id, archived=archived))

    def pin(self, conversation_id: str, pinned: bool = True) -> None:
        self._send(ConversationChangeParams(conversation_id=conversation_id, pinned=pinned))

    def switch_remembering(self, conversation: Conversation) -> None:
        """Leave a conversation out of memory, or take it in again."""
        self._send(ConversationChangeParams(conversation_id=conversation.id, remembers=not conversation.remembers))

    def switch_recall(self, conversation: Conversation) -> None:
        """Give its agents nothing from memory, or recall again."""
        self._send(ConversationChangeParams(conversation_id=conversation.id, recalls=not conversation.recalls))

    def count_tree(self, conversation_id: str) -> None:
        """Count the messages and tasks of a conversation, for the confirmation of its deletion."""
        self._session.spawn(self._count_tree(conversation_id), self.failed.emit)

    def delete(self, conversation_id: str) -> None:
        """Delete an archived conversation permanently."""
        self._session.spawn(self._delete(conversation_id), self.failed.emit)

    def export(self, conversation_id: str, form: ExportFormat, path: str, leaf_id: str | None = None) -> None:
        """Export a conversation, or its branch that ends in a leaf, to a file. Replaces an existing file."""
        params = DataExportParams(
            path=path, format=form, conversation_ids=(conversation_id,), leaf_id=leaf_id, overwrite=True
        )
        self._session.spawn(self._export(params), self.failed.emit)

    async def _search(self, text: str, number: int) -> None:
        result = await self._session.call(CONVERSATION_SEARCH, ConversationSearchParams(text=text, limit=_MAX_HITS))
        if number == self._search_number:
            self.searched.emit(result)

    def _send(self, params: ConversationChangeParams) -> None:
        self._session.spawn(self._send_change(params), self.failed.emit)

    async def _send_change(self, params: ConversationChangeParams) -> None:
        changed = (await self._session.call(CONVERSATION_CHANGE, params)).conversation
        if params.archived:
            self.archived_by_user.emit(changed)
        if params.remembers is not None or params.recalls is not None:
            self.memory_switched.emit(changed)

    async def _count_tree(self, conversation_id: str) -> None:
        tree = await self._session.call(CONVERSATION_TREE, ConversationTreeParams(conversation_id=conversation_id))
        self.counted.emit(conversation_id, len(tree.nodes), len(tree.tasks))

    async def _delete(self, conversation_id: str) -> None:
        await self._session.call(CONVERSATION_DELETE, ConversationDeleteParams(conversation_id=conversation_id))

    async def _export(self, params: DataExportParams) -> None:
        done = await self._session.call(DATA_EXPORT, params)
        self.exported.emit(tr("Exported to {path} ({size}).").format(path=done.path, size=file_size(done.bytes)))


class TitleSearchStore(QObject):
    """Emits `searched` with a tuple of `Conversation` for the newest query."""

    searched = Signal(object)

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self._query = ""

    def search(self, text: str) -> None:
        """Search titles. Finds nothing for a single letter or without a connection."""
        self._query = text.strip()
        if len(self._query) >= _MIN_QUERY and self._session.state == "ready":
            self._session.spawn(self._search(self._query))

    async def _search(self, text: str) -> None:
        matches = await self._session.call(CONVERSATION_SEARCH, ConversationSearchParams(text=text))
        if text == self._query:
            self.searched.emit(matches.titles)
