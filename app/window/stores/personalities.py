"""The personalities there are, by name; asked for when the session becomes ready, then kept by events."""

from PySide6.QtCore import QObject, Signal

from app.protocol.agents import Personality
from app.protocol.engine import EmptyParams
from app.protocol.events import PersonalityDeleted, PersonalityUpdate
from app.protocol.wire import PERSONALITY_LIST
from app.window.stores.session import Session

DEFAULT = "assistant"


class PersonalityStore(QObject):
    """`changed` at every news."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._known: dict[str, Personality] = {}
        session.state_changed.connect(self._on_state_changed)

    @property
    def all(self) -> tuple[Personality, ...]:
        return tuple(sorted(self._known.values(), key=lambda personality: personality.name.casefold()))

    def get(self, personality_id: str) -> Personality | None:
        return self._known.get(personality_id)

    def apply(self, event: PersonalityUpdate | PersonalityDeleted) -> None:
        """Take what the engine told."""
        match event:
            case PersonalityUpdate(personality=personality):
                self._known[personality.id] = personality
            case PersonalityDeleted(personality_id=personality_id):
                self._known.pop(personality_id, None)
        self.changed.emit()

    def _on_state_changed(self) -> None:
        if self._session.state == "ready":
            self._session.spawn(self._load())

    async def _load(self) -> None:
        result = await self._session.call(PERSONALITY_LIST, EmptyParams())
        self._known = {personality.id: personality for personality in result.personalities}
        self.changed.emit()
