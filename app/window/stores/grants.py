"""The grants in force, newest first; asked for when somebody looks at them, then kept by events."""

from PySide6.QtCore import QObject, Signal

from app.protocol.events import ConversationDeleted, GrantUpdate
from app.protocol.grants import Grant, GrantListParams, GrantRevokeParams
from app.protocol.wire import GRANT_LIST, GRANT_REVOKE
from app.window.stores.session import Session


class GrantStore(QObject):
    """`changed` at every news, `failed` with the words where something was refused."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._known: dict[str, Grant] = {}

    @property
    def all(self) -> tuple[Grant, ...]:
        return tuple(sorted(self._known.values(), key=lambda grant: (grant.created_at, grant.id), reverse=True))

    def load(self) -> None:
        self._session.spawn(self._load(), self.failed.emit)

    def revoke(self, grant_id: str) -> None:
        self._session.spawn(self._revoke(grant_id), self.failed.emit)

    def apply(self, event: GrantUpdate | ConversationDeleted) -> None:
        """Take what the engine told: what was remembered for a conversation alone goes with it."""
        match event:
            case GrantUpdate(grant=grant) if grant.revoked_at is None:
                self._known[grant.id] = grant
            case GrantUpdate(grant=grant):
                self._known.pop(grant.id, None)
            case ConversationDeleted(conversation_id=conversation_id):
                self._known = {name: one for name, one in self._known.items() if one.scope_id != conversation_id}
        self.changed.emit()

    async def _load(self) -> None:
        grants = (await self._session.call(GRANT_LIST, GrantListParams())).grants
        self._known = {grant.id: grant for grant in grants}
        self.changed.emit()

    async def _revoke(self, grant_id: str) -> None:
        await self._session.call(GRANT_REVOKE, GrantRevokeParams(grant_id=grant_id))
