"""The files that the tasks of a conversation changed, their diffs and patches."""

from PySide6.QtCore import QObject, QTimer, Signal, SignalInstance

from errand.client.patch import patch_of
from errand.protocol.changes import (
    CHANGE_DIFF,
    CHANGE_LIST,
    Change,
    ChangedFile,
    ChangeDiffParams,
    ChangeListParams,
    FileDiff,
    TaskChanges,
)
from errand.protocol.events import ChangeUpdate, Event
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.review.undo import UndoStore
from errand.window.stores.session import EngineSession

_THROTTLE_MS = 250  # a task may change many files at once


class ChangesStore(QObject):
    """`tasks` are those that changed files, the newest first; `shown` is the chosen one, None if there is none.

    `diff_loaded` has the path and the diff that `compare` asked for, None if nothing is left of the change.
    `patch_loaded` has the patch that `load_patch` asked for, and the names of files that are not in it whole.
    `failed` has a text for people. `history` undoes and redoes what is shown. `review_requested` asks for the panel,
    with a task and a file or `""`.
    """

    _changed = Signal()
    diff_loaded = Signal(str, object)
    patch_loaded = Signal(str, object)
    review_requested = Signal(str, str)
    failed = Signal(str)

    def __init__(self, store: ConversationStore, session: EngineSession) -> None:
        super().__init__()
        self.tasks: tuple[TaskChanges, ...] = ()
        self._store = store
        self._session = session
        self._chosen = ""
        self._compared: ChangeDiffParams | None = None
        self.history = UndoStore(session, lambda: self.shown)
        self.history.conflicted.connect(self.load)  # the file may be another one than the list says
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


def _is_whole(diff: FileDiff) -> bool:
    """Return False if the diff has no lines or lacks some: the file is binary or too large."""
    counts = (sum(hunk.added for hunk in diff.hunks), sum(hunk.removed for hunk in diff.hunks))
    return bool(diff.hunks) and counts == (diff.added, diff.removed)
