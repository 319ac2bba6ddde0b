"""Records what one task is about to change in files."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from app.engine.checkpoints.contents import ContentStore, id_of
from app.engine.checkpoints.notes import note_of
from app.engine.core.ids import new_id
from app.engine.event_log import EventLog
from app.engine.tools.checkpoints import FileChange
from app.protocol.changes import Change
from app.protocol.events import ChangeUpdate
from app.protocol.tasks import Task


class TaskCheckpoints:
    """The `Checkpoints` of a task's tools. Made in the event loop.

    What a change replaces and a note of the change are on disk in one flush, before the change. Its event follows the
    change and is committed together with the result of the call. If the engine is killed in between, the next one
    publishes the note: see notes.py.
    """

    def __init__(self, task: Callable[[], Task], log: EventLog, contents: ContentStore) -> None:
        self._task = task
        self._log = log
        self._contents = contents
        self._loop = asyncio.get_running_loop()

    def note(self, call_id: str, change: FileChange) -> Change:
        record = self._change(call_id, change)
        contents = [content for content in (change.before, change.after) if isinstance(content, bytes)]
        self._contents.put(*contents, notes={record.id: note_of(record)})
        return record

    def made(self, change: Change) -> None:
        self._publish(change)

    def failed(self, change: Change) -> None:
        self._publish(msgspec.structs.replace(change, failed=True))

    def _change(self, call_id: str, change: FileChange) -> Change:
        task = self._task()
        return Change(
            id=new_id("change"),
            task_id=task.id,
            conversation_id=task.conversation_id,
            step=task.step_count,
            kind="edit",
            path=str(change.path),
            at=datetime.now(UTC),
            before=_content_id(change.before),
            after=_content_id(change.after),
            call_id=call_id,
            mode=change.mode,
            mode_after=change.mode,
            made_folders=change.made_folders,
            added=change.added,
            removed=change.removed,
        )

    def _publish(self, record: Change) -> None:
        """In the loop, before what the thread returns arrives there."""
        self._loop.call_soon_threadsafe(self._log.publish, ChangeUpdate(change=record))


def _content_id(content: bytes | str) -> str:
    return id_of(content) if isinstance(content, bytes) else content
