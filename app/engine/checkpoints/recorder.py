"""Records what one task is about to change in files."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from app.engine.checkpoints.contents import ContentStore
from app.engine.core.ids import new_id
from app.engine.event_log import EventLog
from app.engine.tools.checkpoints import FileChange
from app.protocol.changes import Change
from app.protocol.events import ChangeUpdate
from app.protocol.tasks import Task


class TaskCheckpoints:
    """The `Checkpoints` of a task's tools."""

    def __init__(self, task: Callable[[], Task], log: EventLog, contents: ContentStore) -> None:
        self._task = task
        self._log = log
        self._contents = contents

    def keep(self, content: bytes, *, durable: bool) -> str:
        return self._contents.put(content, durable=durable)

    async def record(self, call_id: str, change: FileChange) -> Change:
        task = self._task()
        record = Change(
            id=new_id("change"),
            task_id=task.id,
            conversation_id=task.conversation_id,
            step=task.step_count,
            kind="edit",
            path=str(change.path),
            at=datetime.now(UTC),
            before=change.before,
            after=change.after,
            call_id=call_id,
            mode=change.mode,
            mode_after=change.mode,
            made_folders=change.made_folders,
            added=change.added,
            removed=change.removed,
        )
        self._log.publish(ChangeUpdate(change=record))
        await self._log.flush()
        return record

    def failed(self, change: Change) -> None:
        self._log.publish(ChangeUpdate(change=msgspec.structs.replace(change, failed=True)))
