"""Tasks: one row each, replaced with every change."""

from sqlalchemy import bindparam, select

from app.engine.storage.encoding import to_json, to_text
from app.engine.storage.reader import Reader
from app.engine.storage.tables import tasks
from app.engine.storage.upsert import Upsert
from app.engine.storage.write import Write
from app.protocol.tasks import Task

_SAVE = Upsert(tasks, ["id"], ["status", "ended_at", "body"])
_ONE = select(tasks.c.body).where(tasks.c.id == bindparam("id"))
_NEWEST = select(tasks.c.body).order_by(tasks.c.started_at.desc(), tasks.c.id.desc())
_PAGE = _NEWEST.limit(bindparam("limit"))
_OF_CONVERSATION = _PAGE.where(tasks.c.conversation_id == bindparam("conversation_id"))
_ACTIVE = _NEWEST.where(tasks.c.ended_at.is_(None))


def save(task: Task) -> Write:
    return Write(
        _SAVE,
        {
            "id": task.id,
            "conversation_id": task.conversation_id,
            "status": task.status,
            "started_at": to_text(task.started_at),
            "ended_at": to_text(task.ended_at) if task.ended_at else None,
            "body": to_json(task),
        },
    )


class TaskStore:
    """Newest start first in every list."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, task_id: str) -> Task | None:
        return await self._reader.struct(_ONE, Task, {"id": task_id})

    async def page(self, limit: int = 50, conversation_id: str | None = None) -> tuple[Task, ...]:
        if conversation_id is None:
            return await self._reader.structs(_PAGE, Task, {"limit": limit})
        return await self._reader.structs(_OF_CONVERSATION, Task, {"conversation_id": conversation_id, "limit": limit})

    async def active(self) -> tuple[Task, ...]:
        """All that have not ended: under way, waiting, paused or interrupted."""
        return await self._reader.structs(_ACTIVE, Task)
