"""Personalities: the presets agents are made from."""

from sqlalchemy import bindparam, select

from app.engine.storage.encoding import to_json
from app.engine.storage.reader import Reader
from app.engine.storage.tables import personalities
from app.engine.storage.upsert import Upsert
from app.engine.storage.write import Write
from app.protocol.agents import Personality

# There after every opening. Its empty prompt stands for the engine's own.
ASSISTANT = Personality(id="assistant", name="Assistant", system_prompt="", color="blue")

_SAVE = Upsert(personalities, ["id"], ["name", "body"])
_ADD = Upsert(personalities, ["id"], [])
_DELETE = personalities.delete().where(personalities.c.id == bindparam("gone_id"))
_ONE = select(personalities.c.body).where(personalities.c.id == bindparam("id"))
_ALL = select(personalities.c.body).order_by(personalities.c.name, personalities.c.id)


def save(personality: Personality) -> Write:
    return Write(_SAVE, _row(personality))


def add(personality: Personality) -> Write:
    """Leaves the one with the same id as it is."""
    return Write(_ADD, _row(personality))


def delete(personality_id: str) -> Write:
    return Write(_DELETE, {"gone_id": personality_id})


def _row(personality: Personality) -> dict[str, str]:
    return {"id": personality.id, "name": personality.name, "body": to_json(personality)}


class PersonalityStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, personality_id: str) -> Personality | None:
        return await self._reader.struct(_ONE, Personality, {"id": personality_id})

    async def all(self) -> tuple[Personality, ...]:
        return await self._reader.structs(_ALL, Personality)
