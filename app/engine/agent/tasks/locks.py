"""Per-agent locks: one task or one head move at a time; and the keyed lock they are made of."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from app.engine.agent.run.pending_asks import PendingAsks
from app.engine.core.errors import AgentBusy, Busy, NotFound
from app.engine.storage.database import Database
from app.protocol.agents import Agent


class KeyedLock:
    """Keys nobody waits for take no memory."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._wanted: dict[str, int] = {}

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncGenerator[None]:
        self._wanted[key] = self._wanted.get(key, 0) + 1
        try:
            async with self._locks.setdefault(key, asyncio.Lock()):
                yield
        finally:
            self._wanted[key] -= 1
            if not self._wanted[key]:
                del self._wanted[key], self._locks[key]


class AgentLocks:
    """Whoever claims an agent releases it. Once `close` was called there is nothing to be claimed any more."""

    def __init__(self, database: Database, desk: PendingAsks) -> None:
        self._database = database
        self._desk = desk
        self._busy: dict[str, str] = {}  # an agent, and its conversation
        self._held: set[str] = set()
        self._one_of_an_agent = KeyedLock()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    async def acquire(self, agent: Agent) -> None:
        """`AgentBusy` where somebody else has it; who only passes by is waited for."""
        async with self._one_of_an_agent.lock(agent.id):
            if self._closed:
                raise Busy("The engine is ending. Try again when it is back.")
            if agent.id in self._busy:
                raise AgentBusy(
                    f"The agent {agent.name!r} works on a task of this conversation. Steer it, wait for it, or stop it."
                )
            if agent.conversation_id in self._held:
                raise AgentBusy("This conversation is being deleted.")
            self._busy[agent.id] = agent.conversation_id

    def release(self, agent_id: str) -> None:
        self._busy.pop(agent_id, None)

    def is_at_work(self, conversation_id: str) -> bool:
        return conversation_id in self._busy.values()

    async def newest(self, agent: Agent) -> Agent:
        """An agent that was claimed, as it is now that nobody else can move it; a new one is not stored yet."""
        stored = await self._database.agents.get(agent.id)
        if stored is None and agent.version > 0:
            raise NotFound(f"The agent {agent.name!r} is gone: it was deleted, or its conversation was.")
        return stored or agent

    @asynccontextmanager
    async def while_idle(self, agent: Agent) -> AsyncGenerator[Agent | None]:
        """An idle agent as it is now, for a short moment in which nobody can claim it; None where it is at work."""
        async with self._one_of_an_agent.lock(agent.id):
            is_free = agent.id not in self._busy and agent.conversation_id not in self._held
            yield await self._database.agents.get(agent.id) if is_free else None

    @asynccontextmanager
    async def hold_conversation(self, conversation_id: str) -> AsyncGenerator[None]:
        """Nothing can be started in a conversation meanwhile; `AgentBusy` where something is under way."""
        if conversation_id in self._held or self.is_at_work(conversation_id):
            raise AgentBusy("An agent works on a task of this conversation. Wait for it, or stop it.")
        self._held.add(conversation_id)
        try:
            yield
            if await self._database.conversations.get(conversation_id) is None:
                self._desk.forget(conversation_id)
        finally:
            self._held.discard(conversation_id)
