"""What lists show of a conversation beside its title: the state of its task, what is unread, its folder."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from errand.protocol.conversations import Conversation
from errand.protocol.tasks.task import Task
from errand.window.stores.tasks import TaskStore, UnreadStore
from errand.window.widgets.status_dot import DotState, dot_state, shown_state


class ConversationMarks(QObject):
    """Emits `changed` with the id of a conversation whose state or unread count is another one.

    Fifty running tasks send a thousand updates a second, of which hardly any changes a mark. Folders below
    `own_folders` were made for one conversation and are not shown.
    """

    changed = Signal(str)

    def __init__(self, tasks: TaskStore, unread: UnreadStore, own_folders: Path) -> None:
        super().__init__()
        self._tasks = tasks
        self._unread = unread
        self._own_folders = f"{own_folders}/"
        self._states: dict[str, DotState] = {}
        self._counts: dict[str, int] = {}
        self._at_work: set[str] = set()
        tasks.taskUpdate.connect(self._on_task_update)
        unread.changed.connect(self._on_unread_changed)
        for task in (*tasks.running(), *tasks.interrupted()):
            self._on_task_update(task)
        self._on_unread_changed()

    def state(self, conversation_id: str) -> DotState:
        """Return the state of its task if a dot is to be shown, else "idle"."""
        return shown_state(dot_state(self._tasks.of_conversation(conversation_id)), self.unread(conversation_id))

    def unread(self, conversation_id: str) -> int:
        return self._counts.get(conversation_id, 0)

    def is_active(self, conversation_id: str) -> bool:
        """Return True while it runs, waits for somebody, or has something unread."""
        return conversation_id in self._at_work or conversation_id in self._counts

    def folder(self, conversation: Conversation) -> str:
        """Return the folder that somebody chose for it; "" if it has one of its own."""
        return "" if conversation.workspace.startswith(self._own_folders) else conversation.workspace

    def _on_task_update(self, task: Task) -> None:
        conversation_id = task.conversation_id
        state = shown_state(dot_state(self._tasks.of_conversation(conversation_id)), 0)
        if self._states.get(conversation_id, "idle") != state:
            self._states[conversation_id] = state
            (self._at_work.add if state != "idle" else self._at_work.discard)(conversation_id)
            self.changed.emit(conversation_id)

    def _on_unread_changed(self) -> None:
        before, self._counts = self._counts, self._unread.counts()
        for conversation_id in {*before, *self._counts}:
            if before.get(conversation_id) != self._counts.get(conversation_id):
                self.changed.emit(conversation_id)
