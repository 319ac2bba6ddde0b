"""Commands on the queued messages of a task."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject

from errand.protocol.tasks import (
    TASK_CHANGE_QUEUED,
    TASK_REMOVE_QUEUED,
    Queued,
    QueuedKind,
    TaskQueueChangeParams,
    TaskQueueRemoveParams,
)
from errand.translation import tr
from errand.window.stores.conversation.commands import TaskCommands, Unsent
from errand.window.stores.session import EngineSession

_KINDS: tuple[QueuedKind, ...] = ("steer", "follow_up")

_READ = tr("The agent already read this message. Your edit is in the message field: send it as a new message.")


class QueueStore(QObject):
    """The queue of one conversation.

    `commands.failed` reports refusals; `unsent` returns an edited text that was refused.
    """

    def __init__(self, session: EngineSession, commands: TaskCommands) -> None:
        super().__init__()
        self._session = session
        self._commands = commands

    @property
    def entries(self) -> tuple[Queued, ...]:
        """Queued messages in reading order."""
        task = self._commands.task
        if task is None or task.ended_at is not None:
            return ()
        return tuple(entry for kind in _KINDS for entry in task.queue if entry.kind == kind)

    def position(self, queued_id: str) -> tuple[int, int]:
        """The index of an entry among those of its kind, and their number."""
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
        place, count = self.position(queued_id)
        if 0 <= place + by < count:
            self._change(queued_id, self._commands.failed.emit, place=place + by)

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
