"""Commands on the messages that wait in a task's queue."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject

from app.protocol.tasks import (
    TASK_CHANGE_QUEUED,
    TASK_REMOVE_QUEUED,
    Queued,
    QueuedKind,
    TaskQueueChangeParams,
    TaskQueueRemoveParams,
)
from app.window.stores.conversation.commands import TaskCommands, Unsent
from app.window.stores.session import EngineSession

_KINDS: tuple[QueuedKind, ...] = ("steer", "follow_up")

_READ = "The agent has read this text already. Your changed one is in the input: send it as a new message."


class QueueStore(QObject):
    """Of one conversation. A refusal is told by `requests.failed`; an edited text that was not taken by `unsent`."""

    def __init__(self, session: EngineSession, requests: TaskCommands) -> None:
        super().__init__()
        self._session = session
        self._requests = requests

    @property
    def entries(self) -> tuple[Queued, ...]:
        """In the order in which they will be read."""
        task = self._requests.task
        if task is None or task.ended_at is not None:
            return ()
        return tuple(entry for kind in _KINDS for entry in task.queue if entry.kind == kind)

    def place(self, queued_id: str) -> tuple[int, int]:
        """The number of an entry among those of its kind, from 0, and how many they are."""
        entry = self._entry(queued_id)
        own = [each.id for each in self.entries if entry is not None and each.kind == entry.kind]
        return (own.index(queued_id), len(own)) if own else (0, 0)

    def edit(self, queued_id: str, text: str) -> None:
        """A text that was read meanwhile is given back: see `TaskCommands.unsent`."""
        entry = self._entry(queued_id)
        if entry is None:
            self._requests.give_back(Unsent(text), _READ)
        else:
            self._change(queued_id, partial(self._requests.give_back, Unsent(text)), text=text)

    def send_now(self, queued_id: str) -> None:
        """Have it read before the next turn."""
        self._change(queued_id, self._requests.failed.emit, kind="steer")

    def move(self, queued_id: str, by: int) -> None:
        """Up is -1; nothing happens at the ends."""
        place, count = self.place(queued_id)
        if 0 <= place + by < count:
            self._change(queued_id, self._requests.failed.emit, place=place + by)

    def remove(self, queued_id: str) -> None:
        task = self._requests.task
        if task is not None:
            params = TaskQueueRemoveParams(task_id=task.id, queued_id=queued_id)
            self._session.send(TASK_REMOVE_QUEUED, params, self._requests.failed.emit)

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
        task = self._requests.task
        if task is None:
            return
        params = TaskQueueChangeParams(task_id=task.id, queued_id=queued_id, text=text, kind=kind, place=place)
        self._session.send(TASK_CHANGE_QUEUED, params, failed)
