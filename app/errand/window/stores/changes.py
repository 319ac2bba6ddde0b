"""The files that the tasks of a conversation changed, their diffs, and undoing them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import structs
from PySide6.QtCore import QObject, QTimer, Signal, SignalInstance

from errand.client.patch import patch_of
from errand.protocol.base import Method
from errand.protocol.changes import (
    CHANGE_DIFF,
    CHANGE_LIST,
    CHANGE_REDO,
    CHANGE_UNDO,
    Change,
    ChangedFile,
    ChangeDiffParams,
    ChangeListParams,
    ChangeUndoParams,
    ChangeUndoResult,
    FileDiff,
    TaskChanges,
)
from errand.protocol.events import ChangeUpdate, Event
from errand.text.translation import tr
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.session import EngineSession

if TYPE_CHECKING:
    from asyncio import Lock

_THROTTLE_MS = 250  # a task may change many files at once


@dataclass(frozen=True, slots=True)
class _Command:
    """An undo or a redo."""

    method: Method[ChangeUndoParams, ChangeUndoResult]
    params: ChangeUndoParams


@dataclass(frozen=True, slots=True)
class _Step:
    """A command that was done, and the one that reverses it."""

    command: _Command
    inverse: _Command


class ChangesStore(QObject):
    """`tasks` are those that changed files, the newest first; `shown` is the chosen one, None if there is none.

    `diff_loaded` has the path and the diff that `compare` asked for, None if nothing is left of the change.
    `patch_loaded` has the patch that `load_patch` asked for, and the names of files that are not in it whole.
    `conflicted` has the result of a command that left files as they are; `overwrite` repeats it for these.
    `failed` and `hinted` have a text for people. `take_back` and `repeat` go through what was undone and redone here.
    `review_requested` asks for the panel, with a task and a file or `""`.
    """

    _changed = Signal()
    diff_loaded = Signal(str, object)
    patch_loaded = Signal(str, object)
    review_requested = Signal(str, str)
    conflicted = Signal(object)
    done = Signal()
    failed = Signal(str)
    hinted = Signal(str)

    def __init__(self, store: ConversationStore, session: EngineSession) -> None:
        super().__init__()
        self.tasks: tuple[TaskChanges, ...] = ()
        self._store = store
        self._session = session
        self._chosen = ""
        self._compared: ChangeDiffParams | None = None
        self._refused: _Command | None = None
        self._done: list[_Step] = []
        self._taken_back: list[_Step] = []
        self._reload_timer = QTimer(self, singleShot=True, interval=_THROTTLE_MS)
        self._reload_timer.timeout.connect(self.load)
        session.event_received.connect(self._on_event)
        session.resync.connect(self._reload_timer.start)
        store.loaded.connect(self.load)
        if store.is_loaded:
            self.load()

    @property
    def changed(self) -> SignalInstance:
        return self._changed

    @property
    def shown(self) -> TaskChanges | None:
        return next((task for task in self.tasks if task.task_id == self._chosen), next(iter(self.tasks), None))

    @property
    def workspace(self) -> str:
        """The folder of the conversation; empty if there is none yet."""
        task, conversation = self._store.task, self._store.conversation
        return (conversation.workspace if conversation is not None else "") or (task.request.workspace if task else "")

    def count(self, task_id: str) -> int:
        """Return the number of files that a task has changed."""
        return next((len(task.files) for task in self.tasks if task.task_id == task_id), 0)

    def review(self, task_id: str, name: str = "") -> None:
        """Ask for the review of a task, or of one file of it."""
        self.review_requested.emit(task_id, name)

    def choose(self, task_id: str) -> None:
        """Show the changes of another task; those of the newest for one that changed nothing."""
        self._chosen = task_id
        self._changed.emit()

    def load(self) -> None:
        """Read the changes of the conversation; it changes nothing if there is no conversation yet."""
        if self._store.conversation_id is not None and self._session.is_connected:
            self._session.spawn(self._read(self._store.conversation_id), self._on_failed)

    def compare(self, path: str, step: int | None) -> None:
        """Load the diff of a file, or of what one step changed in it."""
        if self.shown is not None:
            params = ChangeDiffParams(task_id=self.shown.task_id, path=path, step=step, renames=True)
            self._compared = params
            self._session.spawn(self._compare(params), self.failed.emit)

    def load_patch(self, path: str | None, step: int | None) -> None:
        """Load the changes of all files or of one as a patch."""
        if self.shown is not None:
            self._session.spawn(self._read_patch(self.shown, path, step), self.failed.emit)

    def undo(self, path: str | None = None, step: int | None = None, hunk: str | None = None) -> None:
        self._change(CHANGE_UNDO, path, step, hunk)

    def redo(self, path: str | None = None, step: int | None = None, hunk: str | None = None) -> None:
        self._change(CHANGE_REDO, path, step, hunk)

    def overwrite(self) -> None:
        """Repeat the command that was refused, and replace what somebody else has written since."""
        if self._refused is not None:
            command = replace(self._refused, params=structs.replace(self._refused.params, overwrite=True))
            self._session.spawn(self._do(command), self.failed.emit)

    def take_back(self) -> None:
        """Reverse the last undo or redo that was done here."""
        nothing = tr("Nothing to take back. Del undoes the change at the cursor.")
        self._session.spawn(self._move(self._done, self._taken_back, _inverse_of, nothing), self.failed.emit)

    def repeat(self) -> None:
        """Do again what was taken back last."""
        nothing = tr("Nothing to repeat.")
        self._session.spawn(self._move(self._taken_back, self._done, _command_of, nothing), self.failed.emit)

    def _change(
        self, method: Method[ChangeUndoParams, ChangeUndoResult], path: str | None, step: int | None, hunk: str | None
    ) -> None:
        if self.shown is not None:
            command = _Command(method, ChangeUndoParams(task_id=self.shown.task_id, path=path, step=step, hunk=hunk))
            self._session.spawn(self._do(command), self.failed.emit)

    @cached_property
    def _lock(self) -> "Lock":
        """One undo or redo at a time, in the order of the keys."""
        from asyncio import Lock  # import asyncio after the first paint

        return Lock()

    async def _do(self, command: _Command) -> None:
        async with self._lock:
            result = await self._run(command)
            if not result.changes:
                return
            # What a person agreed to overwrite once is asked about when the keys do it again.
            command = replace(command, params=structs.replace(command.params, overwrite=False))
            inverse = self._inverse(command, result)
            if inverse is None:
                self._done.clear()  # what came before cannot be taken back without this
            else:
                self._done.append(_Step(command, inverse))
            self._taken_back.clear()

    async def _move(
        self, source: list[_Step], target: list[_Step], command: Callable[[_Step], _Command], nothing: str
    ) -> None:
        """Run the command of the last step of `source`, which then belongs to `target`."""
        async with self._lock:
            if not source:
                self.hinted.emit(nothing)
                return
            result = await self._run(command(source[-1]))
            if not result.conflicts:
                target.append(_renewed(source.pop(), result))

    def _inverse(self, command: _Command, result: ChangeUndoResult) -> _Command | None:
        """The command that reverses another one that was done; None if that is not known."""
        if command.method is CHANGE_UNDO:
            return _redo_of(command, result)
        if command.params.hunk is None:
            return replace(command, method=CHANGE_UNDO)
        return next((step.command for step in reversed(self._done) if step.inverse == command), None)

    async def _run(self, command: _Command) -> ChangeUndoResult:
        result = await self._session.call(command.method, command.params)
        self._refused = command if result.conflicts else None
        if result.conflicts:
            self.load()  # the file may be another one than the list says
            self.conflicted.emit(result)
        else:
            self.done.emit()
        return result

    async def _read(self, conversation_id: str) -> None:
        changes = await self._session.call(CHANGE_LIST, ChangeListParams(conversation_id=conversation_id))
        if changes.tasks or self.tasks:
            self.tasks = changes.tasks
            self._changed.emit()

    async def _compare(self, params: ChangeDiffParams) -> None:
        comparison = await self._session.call(CHANGE_DIFF, params)
        if params == self._compared:
            diff: FileDiff | None = next(iter(comparison.files), None)
            self.diff_loaded.emit(params.path or "", diff)

    async def _read_patch(self, task: TaskChanges, path: str | None, step: int | None) -> None:
        """Files that one answer has no room for are asked for one by one."""
        comparison = await self._session.call(CHANGE_DIFF, ChangeDiffParams(task_id=task.task_id, path=path, step=step))
        files = list(comparison.files)
        for file in task.files[len(task.files) - comparison.left_out :]:
            params = ChangeDiffParams(task_id=task.task_id, path=file.path, step=step)
            files += (await self._session.call(CHANGE_DIFF, params)).files
        files = [file for file in files if not file.is_undone or path is not None]
        folders = {file.path for file in task.files if file.is_folder}
        partial = [file.name for file in files if not _is_whole(file) and file.path not in folders]
        self.patch_loaded.emit(patch_of(files), tuple(partial))

    def _on_event(self, event: Event) -> None:
        match event:
            case ChangeUpdate(change=Change(conversation_id=conversation_id)):
                if conversation_id == self._store.conversation_id:
                    self._reload_timer.start()
            case _:
                pass

    def _on_failed(self, text: str) -> None:
        """The connection is lost, which a banner shows; the next change loads again."""


def is_undone(file: ChangedFile) -> bool:
    """Return whether nothing is left of what a task did to a file."""
    return file.state == "undone"


def _command_of(step: _Step) -> _Command:
    return step.command


def _inverse_of(step: _Step) -> _Command:
    return step.inverse


def _redo_of(command: _Command, result: ChangeUndoResult) -> _Command:
    """The redo that reverses an undo. That of a hunk names the change that undid it."""
    hunk = result.changes[0].id if command.params.hunk is not None and result.changes else None
    return _Command(CHANGE_REDO, structs.replace(command.params, hunk=hunk))


def _renewed(step: _Step, result: ChangeUndoResult) -> _Step:
    """A hunk that is undone again is undone by another change."""
    is_undone_again = bool(result.changes) and result.changes[0].kind == "hunk"
    return replace(step, inverse=_redo_of(step.command, result)) if is_undone_again else step


def _is_whole(diff: FileDiff) -> bool:
    """False if the diff has no lines or lacks some: the file is binary or too large."""
    counts = (sum(hunk.added for hunk in diff.hunks), sum(hunk.removed for hunk in diff.hunks))
    return bool(diff.hunks) and counts == (diff.added, diff.removed)
