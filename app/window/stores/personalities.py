"""The personalities there are, by name; asked for when the session becomes ready, then kept by events."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.protocol.agents import Personality, PersonalityDeleteParams, PersonalitySaveParams
from app.protocol.engine import EmptyParams
from app.protocol.events import PersonalityDeleted, PersonalityUpdate
from app.protocol.wire import PERSONALITY_DELETE, PERSONALITY_LIST, PERSONALITY_SAVE
from app.window.stores.session import Session

DEFAULT = "assistant"


class PersonalityStore(QObject):
    """`changed` at every news. `shipped` are those that come with Errand, as they came; `tools` what one may list."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._known: dict[str, Personality] = {}
        self.shipped: tuple[Personality, ...] = ()
        self.tools: tuple[str, ...] = ()
        session.state_changed.connect(self._on_state_changed)

    @property
    def all(self) -> tuple[Personality, ...]:
        return tuple(sorted(self._known.values(), key=lambda personality: personality.name.casefold()))

    def get(self, personality_id: str) -> Personality | None:
        return self._known.get(personality_id)

    def save(self, personality: Personality, done: Callable[[], None], failed: Callable[[str], None]) -> None:
        """Store one; exactly one of the two is called when the engine has answered."""
        self._session.spawn(self._save(personality, done), failed)

    def delete(self, personality_id: str, done: Callable[[], None], failed: Callable[[str], None]) -> None:
        self._session.spawn(self._delete(personality_id, done), failed)

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

    async def _save(self, personality: Personality, done: Callable[[], None]) -> None:
        await self._session.call(PERSONALITY_SAVE, PersonalitySaveParams(personality=personality))
        done()

    async def _delete(self, personality_id: str, done: Callable[[], None]) -> None:
        await self._session.call(PERSONALITY_DELETE, PersonalityDeleteParams(personality_id=personality_id))
        done()

    async def _load(self) -> None:
        result = await self._session.call(PERSONALITY_LIST, EmptyParams())
        self.shipped, self.tools = result.shipped, result.tools
        self._known = {personality.id: personality for personality in result.personalities}
        self.changed.emit()
