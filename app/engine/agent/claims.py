"""Who may work: one task, or one move of the head, at a time for each agent."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from app.engine.agent.asks import AskDesk
from app.engine.errors import AgentBusy, Busy, NotFound
from app.engine.storage.database import Database
from app.protocol.agents import Agent


class Claims:
    """Whoever claims an agent releases it. Once `close` was called there is nothing to be claimed any more."""

    def __init__(self, database: Database, desk: AskDesk) -> None:
        self._database = database
        self._desk = desk
        self._busy: set[str] = set()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    def claim(self, agent: Agent) -> None:
        if self._closed:
            raise Busy("The engine is ending. Try again when it is back.")
        if agent.id in self._busy:
            raise AgentBusy(
                f"The agent {agent.name!r} works on a task of this conversation. Steer it, wait for it, or stop it."
            )
        self._busy.add(agent.id)

    def release(self, agent_id: str) -> None:
        self._busy.discard(agent_id)

    async def newest(self, agent: Agent) -> Agent:
        """An agent that was claimed, as it is now that nobody else can move it; a new one is not stored yet."""
        stored = await self._database.agents.get(agent.id)
        if stored is None and agent.version > 0:
            raise NotFound("This conversation was deleted.")
        return stored or agent

    @asynccontextmanager
    async def held(self, conversation_id: str) -> AsyncGenerator[None]:
        """Nothing can be started in a conversation meanwhile; `AgentBusy` where something is under way."""
        claimed: list[str] = []
        try:
            for agent in await self._database.agents.list(conversation_id):
                self.claim(agent)
                claimed.append(agent.id)
            yield
            if await self._database.conversations.get(conversation_id) is None:
                self._desk.forget(conversation_id)
        finally:
            for agent_id in claimed:
                self.release(agent_id)
