"""Commands on the queued messages of a task."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject

from errand.client.texts.tasks import unread_messages
from errand.protocol.tasks.groups import Queued, QueuedKind
from errand.protocol.tasks.methods import (
    TASK_CHANGE_QUEUED,
    TASK_REMOVE_QUEUED,
    TaskQueueChangeParams,
    TaskQueueRemoveParams,
)
from errand.protocol.tasks.task import Task
from errand.text.translation import tr
from errand.window.stores.conversation.commands import TaskCommands, Unsent
from errand.window.stores.session import EngineSession

_KINDS: tuple[QueuedKind, ...] = ("steer", "follow_up")

_READ = tr("The agent already read this message. Your edit is in the message field: send it as a new message.")


class QueueStore(QObject):
    """The queue of one conversation. What a task has not read when it ends returns to the message field.

    `commands.failed` reports refusals; `unsent` returns an edited text that was refused.
    """

    def __init__(self, session: EngineSession, commands: TaskCommands) -> None:
        super().__init__()
        self._session = session
        self._commands = commands
        self._at_work: set[str] = set()

    def put_task(self, task: Task) -> None:
        """Return the messages that a task seen at work has not read when it ends, if no other task reads them."""
        if task.outcome.ended_at is None:
            self._at_work.add(task.id)
        elif task.id in self._at_work:
            self._at_work.discard(task.id)
            unread = unread_messages(task) if task.origin.parent_id is None else ()
            if unread:
                paths = tuple(path for entry in unread for path in entry.attachments)
                self._commands.unsent.emit("\n".join(entry.text for entry in unread if entry.text), paths)

    @property
    def entries(self) -> tuple[Queued, ...]:
        """Queued messages in reading order."""
        task = self._commands.task
        if task is None or task.outcome.ended_at is not None:
            return ()
        return tuple(entry for kind in _KINDS for entry in task.queue if entry.kind == kind)

    def position(self, queued_id: str) -> tuple[int, int]:
        """Return the index of an entry among those of its kind, and their number."""
        entry = self._entry(queued_id)
        own = [each.id for each in self.entries if entry is not None and each.kind == entry.kind]
        return (own.index(queued_id), len(own)) if own else (0, 0)

    def edit(self, queued_id: str, text: str) -> None:
        """Change the text. If the agent has read it meanwhile, the text is returned by `TaskCommands.unsent`."""
        entry = self._entry(queued_id)
        if entry is None:
            self._commands.return_unsent(Unsent(text), _READ)
        else:
            self._change(queued_id, partial(self._commands.return_unsent, Unsent(text)), text=text)

    def send_now(self, queued_id: str) -> None:
        """Deliver it before the next turn."""
        self._change(queued_id, self._commands.failed.emit, kind="steer")

    def move(self, queued_id: str, by: int) -> None:
        """Move it up (-1) or down; does nothing at the ends."""
        index, count = self.position(queued_id)
        if 0 <= index + by < count:
            self._change(queued_id, self._commands.failed.emit, place=index + by)

    def remove(self, queued_id: str) -> None:
        task = self._commands.task
        if task is not None:
            params = TaskQueueRemoveParams(task_id=task.id, queued_id=queued_id)
            self._session.send(TASK_REMOVE_QUEUED, params, self._commands.failed.emit)

    def _entry(self, queued_id: str) -> Queued | None:
        return next((entry for entry in self.entries if entry.id == queued_id), None)

    def _change(
        self,
        queued_id: str,
        failed: Callable[[str], None],
        *,
        text: str | None = None,
        kind: QueuedKind | None = None,
        place: int | None = None,
    ) -> None:
        task = self._commands.task
        if task is None:
            return
        params = TaskQueueChangeParams(task_id=task.id, queued_id=queued_id, text=text, kind=kind, place=place)
        self._session.send(TASK_CHANGE_QUEUED, params, failed)
