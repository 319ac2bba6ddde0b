"""Says which conversation was archived just now, and takes it back."""

from PySide6.QtCore import QTimer

from app.protocol.conversations import Conversation
from app.window.stores.conversations import ConversationsStore
from app.window.theme.theme import Theme
from app.window.widgets.banner import Banner

_STAYS_MS = 15_000


class UndoBanner(Banner):
    """Goes by itself after 15 s; the archive is the way after that."""

    def __init__(self, store: ConversationsStore, theme: Theme) -> None:
        super().__init__(theme)
        self._store = store
        self._conversation_id = ""
        self._leave = QTimer(self)
        self._leave.setSingleShot(True)
        self._leave.setInterval(_STAYS_MS)
        self._leave.timeout.connect(self.hide)
        self.acted.connect(self.undo)
        store.put_away.connect(self._on_put_away)

    def undo(self) -> None:
        """Take back what was archived last, while this is shown."""
        if not self.isHidden():
            self.hide()
            self._store.archive(self._conversation_id, archived=False)

    def _on_put_away(self, conversation: Conversation) -> None:
        self._conversation_id = conversation.id
        self.tell("Archived", action="Undo")
        self.setAccessibleName(f"Archived: {conversation.title}")
        self._leave.start()
