"""Agents, their heads, and personalities."""

from sqlalchemy import bindparam, select

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, to_json, to_text, upsert
from errand.engine.storage.sql.tables import agents, personalities
from errand.protocol.agents import Agent, Personality

# Always present after opening. An empty prompt means the engine's default.
ASSISTANT = Personality(id="assistant", name="Assistant", system_prompt="", color="blue")

_SAVE_PERSONALITY = upsert(personalities, ["id"], ["name", "body"])
_ADD = upsert(personalities, ["id"])
_DELETE_PERSONALITY = personalities.delete().where(personalities.c.id == bindparam("gone_id"))
_ONE_PERSONALITY = select(personalities.c.body).where(personalities.c.id == bindparam("id"))
_ALL = select(personalities.c.body).order_by(personalities.c.name, personalities.c.id)

# An older version never replaces a newer one.
_SAVE_AGENT = upsert(agents, ["id"], ["version", "body"], only_if="excluded.version > agents.version")
_DELETE_AGENT = agents.delete().where(agents.c.id == bindparam("gone_id"))
_ONE_AGENT = select(agents.c.body).where(agents.c.id == bindparam("id"))
_OF_CONVERSATION = (
    select(agents.c.body)
    .where(agents.c.conversation_id == bindparam("conversation_id"))
    .order_by(agents.c.created_at, agents.c.id)
)
_NEWEST = select(agents.c.body).order_by(agents.c.created_at.desc(), agents.c.id.desc()).limit(bindparam("limit"))


def save_personality(personality: Personality) -> Write:
    return Write(_SAVE_PERSONALITY, _row(personality))


def add_personality(personality: Personality) -> Write:
    """Keeps an existing row with the same id."""
    return Write(_ADD, _row(personality))


def delete_personality(personality_id: str) -> Write:
    return Write(_DELETE_PERSONALITY, {"gone_id": personality_id})


def _row(personality: Personality) -> dict[str, str]:
    return {"id": personality.id, "name": personality.name, "body": to_json(personality)}


class PersonalityStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, personality_id: str) -> Personality | None:
        return await self._reader.struct(_ONE_PERSONALITY, Personality, {"id": personality_id})

    async def all(self) -> tuple[Personality, ...]:
        return await self._reader.structs(_ALL, Personality)


def save_agent(agent: Agent) -> Write:
    """Has an effect only if the version is higher than the stored one."""
    return Write(
        _SAVE_AGENT,
        {
            "id": agent.id,
            "conversation_id": agent.conversation_id,
            "created_at": to_text(agent.created_at),
            "version": agent.version,
            "body": to_json(agent),
        },
    )


def delete_agent(agent_id: str) -> Write:
    return Write(_DELETE_AGENT, {"gone_id": agent_id})


class AgentStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, agent_id: str) -> Agent | None:
        return await self._reader.struct(_ONE_AGENT, Agent, {"id": agent_id})

    async def list(self, conversation_id: str | None = None, limit: int = 200) -> tuple[Agent, ...]:
        """Oldest first: all of one conversation, or the newest `limit` of all conversations."""
        if conversation_id is not None:
            return await self._reader.structs(_OF_CONVERSATION, Agent, {"conversation_id": conversation_id})
        newest = await self._reader.structs(_NEWEST, Agent, {"limit": limit})
        return newest[::-1]
