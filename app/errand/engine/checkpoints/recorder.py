"""Records what one task is about to change in files."""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from errand.engine.checkpoints.baselines import Baselines
from errand.engine.checkpoints.commands import KeptFiles
from errand.engine.checkpoints.contents import id_of
from errand.engine.checkpoints.notes import note_of
from errand.engine.checkpoints.running_command import RunningCommand
from errand.engine.core.errors import EngineError
from errand.engine.core.ids import new_id
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.event_log import EventLog
from errand.engine.permissions.shell.named_files import named_files
from errand.engine.tools.checkpoints import CommandFiles, FileChange
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

    def __init__(self, task: Callable[[], Task], log: EventLog, baselines: Baselines) -> None:
        self._task = task
        self._log = log
        self._contents = baselines.contents
        self._baselines = baselines
        self._loop = asyncio.get_running_loop()
        self._home = str(Path.home())

    def note(self, call_id: str, change: FileChange) -> Change:
        self._baselines.before_write((str(change.path),))
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
        try:
            self._contents.put(*contents, notes={record.id: note_of(record)})
        except OSError:
            self._baselines.after_write(record.path, None)
            raise
        return record

    def made(self, change: Change) -> None:
        self._baselines.after_write(change.path, change.after)
        self._made(change)

    def failed(self, change: Change) -> None:
        self._baselines.after_write(change.path, None)
        self._made(msgspec.structs.replace(change, failed=True))

    async def prepare(self) -> None:
        await self._baselines.prepare(Path(self._task().request.workspace))

    async def command_begins(self, call_id: str, line: str, folder: Path) -> CommandFiles | None:
        is_given_up = False

        def begin() -> CommandFiles | None:
            files = self._begin(call_id, line, folder)
            if is_given_up and isinstance(files, RunningCommand | _Several):
                files.record_changes()  # nobody else will
            return files

        try:
            return await in_workspace(folder, begin)
        except (EngineError, asyncio.CancelledError):
            is_given_up = True
            raise

    def _begin(self, call_id: str, line: str, folder: Path) -> CommandFiles | None:
        """Return what the command may change: all of the workspace, or without a baseline what its line names."""
        task = self._task()
        workspace = Path(task.request.workspace)
        record = partial(new_change, task, call_id, "command")
        home = self._home
        files = KeptFiles(self._contents, record, self._made)
        baseline = self._baselines.ready(workspace)
        command = None
        if baseline is not None:
            command = RunningCommand(baseline.root, record, self._made, baseline.end, line, str(folder), home)
        if baseline is None or command is None or not baseline.begin(command):
            named = named_files(line, str(folder), home) if line else ()
            return files if named and files.keep(named, workspace) else None
        folders = baseline.left_out_in(line)
        if not folders:
            return command
        left_out = tuple(path for path in named_files(line, str(folder), home) if _is_below(path.path, folders))
        return _Several(command, files) if left_out and files.keep(left_out, workspace) else command

    def _made(self, change: Change) -> None:
        # In the loop, before what the thread returns arrives there.
        self._loop.call_soon_threadsafe(self._publish, change)

    def _publish(self, record: Change) -> None:
        try:
            self._log.publish(ChangeUpdate(change=record))
        except EngineError as error:  # such as when the engine ends: the next one finds the note
            _logger.info("a change is left as a note: %s", error)


@dataclass(frozen=True, slots=True)
class _Several:
    """A command in a workspace with a baseline that names files of folders that this leaves out."""

    command: RunningCommand
    named: KeptFiles

    def record_changes(self) -> None:
        self.command.record_changes()
        self.named.record_changes()


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(f"{path}{os.sep}".startswith(f"{folder}{os.sep}") for folder in folders)


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
