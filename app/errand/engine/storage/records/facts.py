"""Facts that a person pinned or an agent proposed, in the order in which they were added."""

from sqlalchemy import bindparam, select

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, to_json, upsert
from errand.engine.storage.sql.tables import facts
from errand.protocol.memory import Fact

_SAVE = upsert(facts, ["id"], ["body"])
_DELETE = facts.delete().where(facts.c.id == bindparam("fact_id"))
_ALL = select(facts.c.body).order_by(facts.c.number)


def save(fact: Fact) -> Write:
    return Write(_SAVE, {"id": fact.id, "body": to_json(fact)})


def delete(fact_id: str) -> Write:
    return Write(_DELETE, {"fact_id": fact_id})


class FactStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def all(self) -> tuple[Fact, ...]:
        """Oldest first."""
        return await self._reader.structs(_ALL, Fact)
