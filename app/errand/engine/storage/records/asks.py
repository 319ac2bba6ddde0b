"""Asks: pending and settled decisions by users."""

from collections.abc import Sequence

from sqlalchemy import bindparam, select

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, is_one_of, to_json, to_text, upsert
from errand.engine.storage.sql.tables import asks
from errand.protocol.asks import Ask

# The first answer wins.
_SAVE = upsert(asks, ["id"], ["status", "body"], only_if="asks.status = 'waiting'")
_ONE = select(asks.c.body).where(asks.c.id == bindparam("id"))
_WAITING = select(asks.c.body).where(asks.c.status == "waiting").order_by(asks.c.created_at, asks.c.id)
_NEWEST = select(asks.c.body).order_by(asks.c.created_at.desc(), asks.c.id.desc())


def save(ask: Ask) -> Write:
    """Has an effect only while the stored ask is waiting: the first answer wins."""
    return Write(
        _SAVE,
        {
            "id": ask.id,
            "task_id": ask.task_id,
            "status": ask.status,
            "created_at": to_text(ask.created_at),
            "body": to_json(ask),
        },
    )


class AskStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, ask_id: str) -> Ask | None:
        return await self._reader.struct(_ONE, Ask, {"id": ask_id})

    async def waiting(self, task_ids: Sequence[str] | None = None) -> tuple[Ask, ...]:
        """Return all pending asks, or those of some tasks, oldest first."""
        waiting_asks = await self._reader.structs(_WAITING, Ask)
        return waiting_asks if task_ids is None else tuple(ask for ask in waiting_asks if ask.task_id in task_ids)

    async def page(self, limit: int = 200, task_ids: Sequence[str] | None = None) -> tuple[Ask, ...]:
        """Asks of any status, newest first; of all tasks or of some, in one query."""
        query = _NEWEST.limit(limit)
        if task_ids is not None:
            query = query.where(is_one_of(asks.c.task_id, task_ids))
        return await self._reader.structs(query, Ask)
