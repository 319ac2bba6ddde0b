"""All conversations: the list of those at hand, the archived ones, search, and what a person does to one."""

from PySide6.QtCore import Signal

from app.client.figures import file_size
from app.protocol.conversations import (
    Conversation,
    ConversationChangeParams,
    ConversationSearchParams,
    ConversationSearchResult,
    ConversationTreeParams,
)
from app.protocol.data import ConversationDeleteParams, DataExportParams, ExportFormat
from app.protocol.wire import (
    CONVERSATION_CHANGE,
    CONVERSATION_DELETE,
    CONVERSATION_SEARCH,
    CONVERSATION_TREE,
    DATA_EXPORT,
)
from app.window.stores.listing import Listing
from app.window.stores.session import Session
from app.window.stores.shelf import Shelf

_MOST_HITS = 50


class ConversationsStore(Listing):
    """As a listing: the pinned ones, then all others that are not archived. `archived` is loaded by who shows it.

    `found` gives a `ConversationSearchResult`. `weighed` answers `weigh`, with how many messages and tasks there are.
    `put_away` gives the conversation that was archived here, `dropped` the id of one that was deleted,
    `exported` the words of what was written.
    """

    found = Signal(object)
    weighed = Signal(str, int, int)
    dropped = Signal(str)
    put_away = Signal(object)
    exported = Signal(str)

    def __init__(self, session: Session) -> None:
        super().__init__(session, (Shelf(pinned=True), Shelf(pinned=False)))
        self.archived = Listing(session, (Shelf(archived=True),))
        self.archived.failed.connect(self.failed)
        self._searched = 0

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
        """Find `text` in titles and messages. A newer search makes an older one void; an empty text finds nothing."""
        self._searched += 1
        if text.strip():
            self._session.spawn(self._search(text, self._searched), self.failed.emit)
        else:
            self.found.emit(ConversationSearchResult(hits=()))

    def rename(self, conversation_id: str, title: str) -> None:
        self._send(ConversationChangeParams(conversation_id=conversation_id, title=title))

    def archive(self, conversation_id: str, archived: bool = True) -> None:
        self._send(ConversationChangeParams(conversation_id=conversation_id, archived=archived))

    def pin(self, conversation_id: str, pinned: bool = True) -> None:
        self._send(ConversationChangeParams(conversation_id=conversation_id, pinned=pinned))

    def weigh(self, conversation_id: str) -> None:
        """Count what would go with a conversation, for who asks before it is deleted."""
        self._session.spawn(self._weigh(conversation_id), self.failed.emit)

    def delete(self, conversation_id: str) -> None:
        """For good; only an archived one."""
        self._session.spawn(self._delete(conversation_id), self.failed.emit)

    def export(self, conversation_id: str, form: ExportFormat, path: str, leaf_id: str | None = None) -> None:
        """Write one to a file, or the branch of it that ends in a leaf; what is there is replaced."""
        params = DataExportParams(
            path=path, format=form, conversation_ids=(conversation_id,), leaf_id=leaf_id, overwrite=True
        )
        self._session.spawn(self._export(params), self.failed.emit)

    async def _search(self, text: str, number: int) -> None:
        result = await self._session.call(CONVERSATION_SEARCH, ConversationSearchParams(text=text, limit=_MOST_HITS))
        if number == self._searched:
            self.found.emit(result)

    def _send(self, params: ConversationChangeParams) -> None:
        self._session.spawn(self._send_change(params), self.failed.emit)

    async def _send_change(self, params: ConversationChangeParams) -> None:
        changed = (await self._session.call(CONVERSATION_CHANGE, params)).conversation
        if params.archived:
            self.put_away.emit(changed)

    async def _weigh(self, conversation_id: str) -> None:
        tree = await self._session.call(CONVERSATION_TREE, ConversationTreeParams(conversation_id=conversation_id))
        self.weighed.emit(conversation_id, len(tree.nodes), len(tree.tasks))

    async def _delete(self, conversation_id: str) -> None:
        await self._session.call(CONVERSATION_DELETE, ConversationDeleteParams(conversation_id=conversation_id))

    async def _export(self, params: DataExportParams) -> None:
        done = await self._session.call(DATA_EXPORT, params)
        self.exported.emit(f"Written to {done.path} ({file_size(done.bytes)}).")
