"""System prompts: of each task the one that it began with, in its parts; written once."""

from sqlalchemy import bindparam, select

from app.engine.storage.encoding import from_json, to_json
from app.engine.storage.reader import Reader
from app.engine.storage.tables import prompts
from app.engine.storage.upsert import Upsert
from app.engine.storage.write import Write
from app.protocol.prompts import PromptPart

_ADD = Upsert(prompts, ["task_id"], [])
_OF_TASK = select(prompts.c.parts).where(prompts.c.task_id == bindparam("task_id"))


def add(task_id: str, parts: tuple[PromptPart, ...]) -> Write:
    """Leaves the one that is there."""
    return Write(_ADD, {"task_id": task_id, "parts": to_json(parts)})


class PromptStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def of_task(self, task_id: str) -> tuple[PromptPart, ...]:
        """None of a task that has not begun to think, or ran before prompts were kept."""
        rows = await self._reader.rows(_OF_TASK, {"task_id": task_id})
        return from_json(rows[0].parts, tuple[PromptPart, ...]) if rows else ()
