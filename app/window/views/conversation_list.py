"""The list of conversations at hand: pinned ones, then by day; renamed in place, pinned, archived."""

from app.protocol.conversations import Conversation
from app.window.stores.conversations import ConversationsStore
from app.window.theme.theme import Theme
from app.window.views.listing_view import ListAction, ListingView


class ConversationListView(ListingView):
    def __init__(self, store: ConversationsStore, theme: Theme) -> None:
        super().__init__(store, theme, "Conversations")
        self._store = store
        self.renamed.connect(store.rename)
        self.export_asked.connect(store.export)

    def actions_for(self, conversation: Conversation) -> tuple[ListAction, ...]:
        return (
            *self.open_actions(),
            ListAction("Rename", "F2", self.edit_title),
            ListAction("Unpin" if conversation.pinned else "Pin", "Ctrl+D", self._turn_pin),
            self.export_action(),
            ListAction("Archive", "Del", self._archive),
        )

    def _turn_pin(self, conversation: Conversation) -> None:
        self._store.pin(conversation.id, not conversation.pinned)

    def _archive(self, conversation: Conversation) -> None:
        self._store.archive(conversation.id)
