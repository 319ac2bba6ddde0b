"""Per-agent locks (one task or one head move at a time), and the keyed lock they are built on."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.core.errors import AgentBusy, Busy, NotFound
from errand.engine.storage.database import Database
from errand.protocol.agents import Agent


class KeyedLock:
    """A lock per key. Unused keys take no memory."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._user_counts: dict[str, int] = {}

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncGenerator[None]:
        self._user_counts[key] = self._user_counts.get(key, 0) + 1
        try:
            async with self._locks.setdefault(key, asyncio.Lock()):
                yield
        finally:
            self._user_counts[key] -= 1
            if not self._user_counts[key]:
                del self._user_counts[key], self._locks[key]


class AgentLocks:
    """Tracks which agents are in use. Pair `acquire` with `release`. After `close`, nothing can be acquired."""

    def __init__(self, database: Database, asks: PendingAsks) -> None:
        self._database = database
        self._asks = asks
        self._busy: dict[str, str] = {}  # agent id → conversation id
        self._locked_conversations: set[str] = set()
        self._keyed_lock = KeyedLock()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    async def acquire(self, agent: Agent) -> None:
        """Raises `AgentBusy` if the agent is in use; waits for short holders (`while_idle`)."""
        async with self._keyed_lock.lock(agent.id):
            if self._closed:
                raise Busy("The engine is ending. Try again when it is back.")
            if agent.id in self._busy:
                raise AgentBusy(
                    f"The agent {agent.name!r} works on a task of this conversation. Steer it, wait for it, or stop it."
                )
            if agent.conversation_id in self._locked_conversations:
                raise AgentBusy("This conversation is being deleted, or a text of it is being forgotten.")
            self._busy[agent.id] = agent.conversation_id

    def release(self, agent_id: str) -> None:
        self._busy.pop(agent_id, None)

    def is_at_work(self, conversation_id: str) -> bool:
        return conversation_id in self._busy.values()

    async def current(self, agent: Agent) -> Agent:
        """Return the stored version of an acquired agent, or `agent` if it is new.

        Raises `NotFound` if it was deleted.
        """
        stored = await self._database.agents.get(agent.id)
        if stored is None and agent.version > 0:
            raise NotFound(f"The agent {agent.name!r} is gone: it was deleted, or its conversation was.")
        return stored or agent

    @asynccontextmanager
    async def while_idle(self, agent: Agent) -> AsyncGenerator[Agent | None]:
        """The current version of an idle agent, locked during the block (keep it short); None if it is in use."""
        async with self._keyed_lock.lock(agent.id):
            is_free = agent.id not in self._busy and agent.conversation_id not in self._locked_conversations
            yield await self._database.agents.get(agent.id) if is_free else None

    @asynccontextmanager
    async def lock_conversation(self, conversation_id: str) -> AsyncGenerator[None]:
        """Prevents new tasks in a conversation. Raises `AgentBusy` if an agent is in use there."""
        if conversation_id in self._locked_conversations or self.is_at_work(conversation_id):
            raise AgentBusy("An agent works on a task of this conversation. Wait for it, or stop it.")
        self._locked_conversations.add(conversation_id)
        try:
            yield
            if await self._database.conversations.get(conversation_id) is None:
                self._asks.drop_conversation(conversation_id)
        finally:
            self._locked_conversations.discard(conversation_id)
