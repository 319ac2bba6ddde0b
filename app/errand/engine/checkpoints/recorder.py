"""Records what one task is about to change in files."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from errand.engine.checkpoints.commands import KeptFiles
from errand.engine.checkpoints.contents import ContentStore, id_of
from errand.engine.checkpoints.notes import note_of
from errand.engine.core.errors import EngineError
from errand.engine.core.ids import new_id
from errand.engine.event_log import EventLog
from errand.engine.permissions.shell.named_files import named_files
from errand.engine.tools.checkpoints import FileChange
from errand.protocol.changes import Change, ChangeKind
from errand.protocol.events import ChangeUpdate
from errand.protocol.tasks.task import Task

_logger = logging.getLogger(__name__)


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
        self._home = str(Path.home())

    def note(self, call_id: str, change: FileChange) -> Change:
        record = msgspec.structs.replace(
            new_change(self._task(), call_id, "edit", change.path, _content_id(change.before)),
            after=_content_id(change.after),
            mode=change.mode,
            mode_after=change.mode,
            made_folders=change.made_folders,
            added=change.added,
            removed=change.removed,
        )
        contents = [content for content in (change.before, change.after) if isinstance(content, bytes)]
        self._contents.put(*contents, notes={record.id: note_of(record)})
        return record

    def made(self, change: Change) -> None:
        # In the loop, before what the thread returns arrives there.
        self._loop.call_soon_threadsafe(self._publish, change)

    def keep_named(self, call_id: str, line: str, folder: Path) -> KeptFiles | None:
        task = self._task()
        files = KeptFiles(self._contents, partial(new_change, task, call_id, "command"), self.made)
        return files if files.keep(named_files(line, str(folder), self._home), Path(task.request.workspace)) else None

    def failed(self, change: Change) -> None:
        self.made(msgspec.structs.replace(change, failed=True))

    def _publish(self, record: Change) -> None:
        try:
            self._log.publish(ChangeUpdate(change=record))
        except EngineError as error:  # such as when the engine ends: the next one finds the note
            _logger.info("a change is left as a note: %s", error)


def new_change(task: Task, call_id: str, kind: ChangeKind, path: Path, before: str) -> Change:
    """Return the record of a change at this step of a task; it has the content from before twice."""
    return Change(
        id=new_id("change"),
        task_id=task.id,
        conversation_id=task.conversation_id,
        step=task.progress.step_count,
        kind=kind,
        path=str(path),
        at=datetime.now(UTC),
        before=before,
        after=before,
        call_id=call_id,
    )


def _content_id(content: bytes | str) -> str:
    return id_of(content) if isinstance(content, bytes) else content
