"""The one place that changes stored conversations: each change applies to the newest version, one after another."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from errand.engine.agent.tasks.locks import KeyedLock
from errand.engine.core.errors import NotFound
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.engine.storage.sql.journal import JournalChange
from errand.protocol.conversations import Conversation
from errand.protocol.events import ConversationUpdate


class ConversationChanges:
    """An event carries a whole conversation: whoever publishes one that was read earlier takes back what others have
    changed since. Make one for an engine.
    """

    def __init__(self, log: EventLog, database: Database) -> None:
        self._log = log
        self._database = database
        self._locks = KeyedLock()
        # Published but not committed yet: a read would still find the version before.
        self._held: dict[str, tuple[Conversation, JournalChange]] = {}

    async def change(self, conversation_id: str, how: Callable[[Conversation], Conversation]) -> Conversation:
        """Publish `how` applied to the newest version, if that changes it; returns it. Does not wait for the commit.

        `how` may raise: nothing is changed then. Raises `NotFound` if there is no such conversation.
        """
        async with self._locks.lock(conversation_id):
            newest = await self._newest(conversation_id)
            changed = how(newest)
            if changed != newest:
                self._publish(changed)
            return changed

    @asynccontextmanager
    async def exclusive(self, conversation_id: str) -> AsyncGenerator[None]:
        """Keep others from changing the conversation during the block.

        Changes that wait for its end begin with a new read.
        """
        async with self._locks.lock(conversation_id):
            yield

    async def _newest(self, conversation_id: str) -> Conversation:
        held = self._held.get(conversation_id)
        if held is not None and held[1].failure is None:
            return held[0]
        stored = await self._database.conversations.get(conversation_id)
        if stored is None:
            raise NotFound(f"There is no conversation {conversation_id!r}.")
        return stored

    def _publish(self, conversation: Conversation) -> None:
        def on_commit() -> None:
            if self._held[conversation.id][0] is conversation:
                del self._held[conversation.id]

        event = ConversationUpdate(conversation=conversation)
        self._held[conversation.id] = conversation, self._log.publish(event, on_commit=on_commit)
