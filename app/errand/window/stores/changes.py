"""The files that the tasks of a conversation changed, their diffs, and undoing them."""

from PySide6.QtCore import QObject, QTimer, Signal

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
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.session import EngineSession

_THROTTLE_MS = 250  # a task may change many files at once


class ChangesStore(QObject):
    """`tasks` are those that changed files, the newest first; `shown` is the chosen one, None if there is none.

    `diff_loaded` has the diffs that `compare` asked for. `conflicted` has the result of a command that changed nothing,
    because of conflicts; `overwrite` repeats it. `failed` has a text for people.
    """

    changed = Signal()
    diff_loaded = Signal(object)
    conflicted = Signal(object)
    done = Signal()
    failed = Signal(str)

    def __init__(self, store: ConversationStore, session: EngineSession) -> None:
        super().__init__()
        self.tasks: tuple[TaskChanges, ...] = ()
        self._store = store
        self._session = session
        self._chosen = ""
        self._compared: ChangeDiffParams | None = None
        self._refused: tuple[Method[ChangeUndoParams, ChangeUndoResult], ChangeUndoParams] | None = None
        self._reload_timer = QTimer(self, singleShot=True, interval=_THROTTLE_MS)
        self._reload_timer.timeout.connect(self.load)
        session.event_received.connect(self._on_event)
        session.resync.connect(self._reload_timer.start)
        store.loaded.connect(self.load)
        if store.is_loaded:
            self.load()

    @property
    def shown(self) -> TaskChanges | None:
        return next((task for task in self.tasks if task.task_id == self._chosen), next(iter(self.tasks), None))

    @property
    def is_loading(self) -> bool:
        return self._reload_timer.isActive()

    def file(self, path: str) -> ChangedFile | None:
        return next((file for file in self.shown.files if file.path == path), None) if self.shown else None

    def choose(self, task_id: str) -> None:
        """Show the changes of another task."""
        self._chosen = task_id
        self.changed.emit()

    def load(self) -> None:
        """Read the changes of the conversation; it changes nothing if there is no conversation yet."""
        if self._store.conversation_id is not None and self._session.is_connected:
            self._session.spawn(self._read(self._store.conversation_id), self._on_failed)

    def compare(self, path: str, step: int | None) -> None:
        """Load the diff of a file, or of what one step changed in it."""
        if self.shown is not None:
            params = ChangeDiffParams(task_id=self.shown.task_id, path=path, step=step)
            self._compared = params
            self._session.spawn(self._compare(params), self.failed.emit)

    def undo(self, path: str | None = None, step: int | None = None, hunk: str | None = None) -> None:
        self._change(CHANGE_UNDO, path, step, hunk)

    def redo(self, path: str | None = None, step: int | None = None, hunk: str | None = None) -> None:
        self._change(CHANGE_REDO, path, step, hunk)

    def overwrite(self) -> None:
        """Repeat the command that was refused, and replace what somebody else has written since."""
        if self._refused is not None:
            method, params = self._refused
            whole = ChangeUndoParams(
                task_id=params.task_id, path=params.path, step=params.step, hunk=params.hunk, overwrite=True
            )
            self._session.spawn(self._run(method, whole), self.failed.emit)

    def _change(
        self, method: Method[ChangeUndoParams, ChangeUndoResult], path: str | None, step: int | None, hunk: str | None
    ) -> None:
        if self.shown is not None:
            params = ChangeUndoParams(task_id=self.shown.task_id, path=path, step=step, hunk=hunk)
            self._session.spawn(self._run(method, params), self.failed.emit)

    async def _run(self, method: Method[ChangeUndoParams, ChangeUndoResult], params: ChangeUndoParams) -> None:
        result = await self._session.call(method, params)
        self._refused = (method, params) if result.conflicts else None
        if result.conflicts:
            self.conflicted.emit(result)
        else:
            self.done.emit()

    async def _read(self, conversation_id: str) -> None:
        found = await self._session.call(CHANGE_LIST, ChangeListParams(conversation_id=conversation_id))
        if found.tasks or self.tasks:
            self.tasks = found.tasks
            self.changed.emit()

    async def _compare(self, params: ChangeDiffParams) -> None:
        found = await self._session.call(CHANGE_DIFF, params)
        if params == self._compared:
            diff: FileDiff | None = next(iter(found.files), None)
            self.diff_loaded.emit(diff)

    def _on_event(self, event: Event) -> None:
        match event:
            case ChangeUpdate(change=Change(conversation_id=conversation_id)):
                if conversation_id == self._store.conversation_id:
                    self._reload_timer.start()
            case _:
                pass

    def _on_failed(self, text: str) -> None:
        """The connection is lost, which a banner shows; the next change loads again."""
