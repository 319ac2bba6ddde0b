"""What a screen reader is told of the conversation in front: replies, ends of tasks, and what waits for an answer.

Sub-agents and other branches are left out, as they are in the transcript.
"""

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from errand.client.safe_text import plain
from errand.client.texts.asks import asked_text
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.task import Task
from errand.window.stores.asks import AskStore
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.tasks import task_activity
from errand.window.widgets.accessibility import announce

# A longer reply is read in the transcript.
_MAX_LENGTH = 600


class Announcements(QObject):
    """Announces only while `view` is visible; what other conversations need is told by notifications."""

    def __init__(self, store: ConversationStore, asks: AskStore, view: QWidget) -> None:
        super().__init__(view)
        self._store = store
        self._asks = asks
        self._view = view
        self._working: set[str] = set()
        self._heard_replies: set[str] = set()
        self._heard_asks = {ask.id for ask in asks.waiting()}
        store.taskUpdate.connect(self._on_task)
        store.taskMessage.connect(self._on_node)
        asks.changed.connect(self._on_asks_changed)

    def _on_task(self, task: Task | None) -> None:
        """Announce the end of a task that was seen at work here, not of one that was opened after its end."""
        last_task = self._store.task
        if task is None or last_task is None or task.id != last_task.id:
            return
        if task.outcome.ended_at is None:
            self._working.add(task.id)
        elif task.id in self._working:
            self._working.remove(task.id)
            self._say(task_activity(task), is_urgent=task.activity.status == "error")

    def _on_node(self, node: Node) -> None:
        if node.role != "assistant" or node.id in self._heard_replies or not self._store.branch.holds(node.id):
            return
        if text := "\n".join(block.text for block in node.blocks if isinstance(block, TextBlock)).strip():
            self._heard_replies.add(node.id)
            self._say(text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…")

    def _on_asks_changed(self) -> None:
        waiting = self._asks.waiting()
        for ask in waiting:
            if ask.id not in self._heard_asks and ask.conversation_id == self._store.conversation_id:
                self._say(asked_text(ask), is_urgent=True)
        self._heard_asks = {ask.id for ask in waiting}

    def _say(self, text: str, *, is_urgent: bool = False) -> None:
        if self._view.isVisible():
            announce(self._view, plain(text), is_urgent=is_urgent)
