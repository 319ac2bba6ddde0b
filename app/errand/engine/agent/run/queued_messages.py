"""Messages that the agent has not read yet: the stored queue that feeds the agent's queues."""

from collections.abc import Callable
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from errand.engine.agent.history.attachments import Attachments
from errand.engine.agent.history.conversion import user_message
from errand.engine.agent.loop.run_state import MessageQueue
from errand.engine.agent.run.task_state import TaskState
from errand.engine.core.errors import Busy, Conflict, InvalidParams
from errand.engine.core.messages import Message, UserMessage
from errand.protocol.blocks import Block
from errand.protocol.tasks.groups import Queued
from errand.protocol.tasks.methods import TaskQueueChangeParams
from errand.protocol.tasks.task import replace_fields

QueuedEntries: TypeAlias = tuple[Queued, ...]

# The whole queue is sent to every client and written to the event log with each change of its task.
_MAX_MESSAGES = 100
_MAX_CHARACTERS = 1_500_000
_NOT_WAITING = "This does not wait any more: the agent has read it, or it was taken back."


class QueuedMessages:
    """The queue of one running task. `steering` and `follow_ups` are what its agent reads."""

    def __init__(self, state: TaskState, attachments: Attachments) -> None:
        self._state = state
        self._attachments = attachments
        self._messages: dict[str, UserMessage] = {}
        self.steering = MessageQueue("one_at_a_time")
        self.follow_ups = MessageQueue("one_at_a_time")
        self._fill_agent_queues(state.task.queue)

    def add(self, entry: Queued) -> None:
        queue = self._state.task.queue
        if len(queue) >= _MAX_MESSAGES:
            raise Busy(
                f"{_MAX_MESSAGES} texts wait for the agent already. Take some back, or wait until it has read them."
            )
        self.edit(lambda queue: (*queue, entry))

    def edit(self, change: Callable[[QueuedEntries], QueuedEntries]) -> None:
        """Change the queue. Raises `Conflict` if that would change an entry that the agent has taken."""
        old = self._state.task.queue
        new = change(old)
        if _characters(new) > max(_MAX_CHARACTERS, _characters(old)):
            raise Busy("Too much text waits for the agent already. Take some back, or wait until it has read it.")
        waiting = self._waiting()
        in_hand = [entry for entry in old if entry.id not in waiting]
        if any(entry not in new for entry in in_hand):
            raise Conflict(_NOT_WAITING)
        self._state.set(replace_fields(self._state.task, queue=new))
        self._fill_agent_queues(tuple(entry for entry in new if entry not in in_hand))

    def read(self, message: Message) -> Queued | None:
        """Remove the entry that this message was made from. None for any other message.

        Stores and publishes nothing: the caller does, together with the node.
        """
        task = self._state.task
        entry = next((entry for entry in task.queue if self._messages.get(entry.id) is message), None)
        if entry is None:
            return None
        del self._messages[entry.id]
        self._state.task = replace_fields(task, queue=without_entry(task.queue, entry.id))
        return entry

    def blocks_of(self, entry: Queued) -> tuple[Block, ...]:
        """Return an entry as the blocks of a message."""
        return self._attachments.blocks(entry.text, entry.attachments)

    def _fill_agent_queues(self, queue: QueuedEntries) -> None:
        """Make the agent's queues contain exactly these entries, in this order."""
        self.steering.take_all()
        self.follow_ups.take_all()
        for entry in queue:
            message = self._messages[entry.id] = user_message(self.blocks_of(entry))
            (self.steering if entry.kind == "steer" else self.follow_ups).put(message)

    def _waiting(self) -> set[str]:
        """Ids of the entries that the agent has not taken."""
        queued = (*self.steering.waiting, *self.follow_ups.waiting)
        return {key for key, own in self._messages.items() if any(own is message for message in queued)}


def _characters(queue: QueuedEntries) -> int:
    return sum(len(entry.text) for entry in queue)


def queued_node_id(task_id: str, queued_id: str) -> str:
    """Return the id of an entry's node. It is deterministic, so that a resent entry is recognised as read."""
    return f"node_{blake2b(f'{task_id} {queued_id}'.encode(), digest_size=12).hexdigest()}"


def with_changed_entry(queue: QueuedEntries, params: TaskQueueChangeParams) -> QueuedEntries:
    """Return the queue with one entry changed. A new kind without a `place` puts it last of that kind."""
    old = _find(queue, params.queued_id)
    if params.text is not None and not params.text.strip() and not old.attachments:
        raise InvalidParams("The text is empty. To take it back, remove it.")
    new = msgspec.structs.replace(
        old, text=old.text if params.text is None else params.text, kind=params.kind or old.kind
    )
    if params.place is None and new.kind == old.kind:
        return tuple(new if entry is old else entry for entry in queue)
    return _insert(without_entry(queue, old.id), new, params.place)


def without_entry(queue: QueuedEntries, queued_id: str) -> QueuedEntries:
    gone = _find(queue, queued_id)
    return tuple(entry for entry in queue if entry is not gone)


def _insert(queue: QueuedEntries, entry: Queued, place: int | None) -> QueuedEntries:
    if place is not None and place < 0:
        raise InvalidParams(f"place: {place}; it counts from 0.")
    peers = [index for index, other in enumerate(queue) if other.kind == entry.kind]
    at = len(queue) if place is None or place >= len(peers) else peers[place]
    return (*queue[:at], entry, *queue[at:])


def _find(queue: QueuedEntries, queued_id: str) -> Queued:
    match = next((entry for entry in queue if entry.id == queued_id), None)
    if match is None:
        raise Conflict(_NOT_WAITING)
    return match
