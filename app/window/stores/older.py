"""The pages above the oldest loaded node, with what was settled in them. Where they go is the conversation store's."""

from PySide6.QtCore import QObject, Signal

from app.protocol.conversations import ConversationNodesParams
from app.protocol.wire import CONVERSATION_NODES
from app.window.stores.branch import Branch
from app.window.stores.past import Past
from app.window.stores.session import Session


class OlderPages(QObject):
    """One at a time: `came` gives a `ConversationNodesResult`, `outdated` says that the branch was read anew meanwhile.

    `failed` has the words for what could not be read.
    """

    came = Signal(object)
    outdated = Signal()
    failed = Signal(str)

    def __init__(self, session: Session, branch: Branch, past: Past) -> None:
        super().__init__()
        self._session = session
        self._branch = branch
        self._past = past
        self._is_loading = False

    def load(self, conversation_id: str, limit: int) -> None:
        """Read the next page, if there is one and none is on its way."""
        if self._branch.has_older and not self._is_loading:
            self._is_loading = True
            self._session.spawn(self._load(conversation_id, limit), self.failed.emit)

    async def _load(self, conversation_id: str, limit: int) -> None:
        before, leaf = self._branch.ids[0], self._branch.ids[-1]
        params = ConversationNodesParams(conversation_id=conversation_id, leaf_id=leaf, before_id=before, limit=limit)
        try:
            page = await self._session.call(CONVERSATION_NODES, params)
            await self._past.load(conversation_id, page.nodes)
        finally:
            self._is_loading = False
        if self._branch.ids[0] == before:
            self.came.emit(page)
        else:
            self.outdated.emit()
