"""Changes of files: one row each, in the order in which they were recorded."""

from datetime import datetime

from sqlalchemy import bindparam, select, union

from errand.engine.storage.sql.reader import Reader
from errand.engine.storage.sql.statements import Write, to_json, to_text, upsert
from errand.engine.storage.sql.tables import changes
from errand.protocol.changes import FOLDER, NOTHING, UNKEPT, Change

_SAVE = upsert(changes, ["id"], ["body"])
_all = select(changes.c.body).order_by(changes.c.number)
_OF_TASK = select(changes.c.path).where(changes.c.task_id == bindparam("task_id"))
_OF_FILES = _all.where(changes.c.path.in_(_OF_TASK))
_EXISTS = select(changes.c.id).where(changes.c.id == bindparam("change_id"))
_TASKS = (
    select(changes.c.task_id)
    .where(changes.c.conversation_id == bindparam("conversation_id"))
    .group_by(changes.c.task_id)
)
_CONTENTS = union(
    select(changes.c.before.label("content")).where(changes.c.at >= bindparam("since")),
    select(changes.c.after.label("content")).where(changes.c.at >= bindparam("since")),
)
_CONTENTS_OF = union(
    select(changes.c.before.label("content")).where(changes.c.conversation_id == bindparam("conversation_id")),
    select(changes.c.after.label("content")).where(changes.c.conversation_id == bindparam("conversation_id")),
)


def save(change: Change) -> Write:
    return Write(
        _SAVE,
        {
            "id": change.id,
            "task_id": change.task_id,
            "conversation_id": change.conversation_id,
            "path": change.path,
            "at": to_text(change.at),
            "before": change.before,
            "after": change.after,
            "body": to_json(change),
        },
    )


class ChangeStore:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def of_files(self, task_id: str) -> tuple[Change, ...]:
        """Return all changes, by any task, of the files that a task changed; without those that failed."""
        file_changes = await self._reader.structs(_OF_FILES, Change, {"task_id": task_id})
        return tuple(change for change in file_changes if not change.failed)

    async def exists(self, change_id: str) -> bool:
        return bool(await self._reader.rows(_EXISTS, {"change_id": change_id}))

    async def task_ids(self, conversation_id: str) -> frozenset[str]:
        """Return the tasks of a conversation that changed files."""
        rows = await self._reader.rows(_TASKS, {"conversation_id": conversation_id})
        return frozenset(row.task_id for row in rows)

    async def contents(self, since: datetime) -> frozenset[str]:
        """Return the contents that changes since then name."""
        rows = await self._reader.rows(_CONTENTS, {"since": to_text(since)})
        return frozenset(row.content for row in rows) - {NOTHING, FOLDER, UNKEPT}

    async def contents_of(self, conversation_id: str) -> frozenset[str]:
        """Return the contents that changes of a conversation name."""
        rows = await self._reader.rows(_CONTENTS_OF, {"conversation_id": conversation_id})
        return frozenset(row.content for row in rows) - {NOTHING, FOLDER, UNKEPT}
