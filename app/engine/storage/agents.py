"""Agents and their heads."""

from sqlalchemy import bindparam, select

from app.engine.storage.encoding import to_json, to_text
from app.engine.storage.reader import Reader
from app.engine.storage.tables import agents
from app.engine.storage.upsert import Upsert
from app.engine.storage.write import Write
from app.protocol.agents import Agent

# An older version never replaces a newer one.
_SAVE = Upsert(agents, ["id"], ["version", "body"], only_if="excluded.version > agents.version")
_DELETE = agents.delete().where(agents.c.id == bindparam("gone_id"))
_ONE = select(agents.c.body).where(agents.c.id == bindparam("id"))
_OF_CONVERSATION = (
    select(agents.c.body)
    .where(agents.c.conversation_id == bindparam("conversation_id"))
    .order_by(agents.c.created_at, agents.c.id)
)
_NEWEST = select(agents.c.body).order_by(agents.c.created_at.desc(), agents.c.id.desc()).limit(bindparam("limit"))


def save(agent: Agent) -> Write:
    """Takes effect only where the version is higher than the stored one."""
    return Write(
        _SAVE,
        {
            "id": agent.id,
            "conversation_id": agent.conversation_id,
            "created_at": to_text(agent.created_at),
            "version": agent.version,
            "body": to_json(agent),
        },
    )


def delete(agent_id: str) -> Write:
    return Write(_DELETE, {"gone_id": agent_id})


class AgentStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, agent_id: str) -> Agent | None:
        return await self._reader.struct(_ONE, Agent, {"id": agent_id})

    async def list(self, conversation_id: str | None = None, limit: int = 200) -> tuple[Agent, ...]:
        """Oldest first: all of one conversation, or the newest `limit` of all conversations."""
        if conversation_id is not None:
            return await self._reader.structs(_OF_CONVERSATION, Agent, {"conversation_id": conversation_id})
        newest = await self._reader.structs(_NEWEST, Agent, {"limit": limit})
        return newest[::-1]
