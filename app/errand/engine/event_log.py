"""Numbers events, commits them with the changes they describe, then sends them to clients in order.

Streamed deltas are coalesced.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import msgspec

from errand.engine.storage.event_writes import event_writes
from errand.engine.storage.records import events
from errand.engine.storage.sql.journal import Journal, JournalChange
from errand.engine.storage.sql.statements import Write
from errand.engine.tools.call_display import event_with_displays
from errand.protocol.blocks import Block, TextBlock, ThinkingBlock, ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.events import (
    Delta,
    Event,
    EventRecord,
    LogRecord,
    PromptReading,
    TaskMessage,
    TaskUpdate,
    TextDelta,
    ToolOutput,
)
from errand.protocol.methods import Notice
from errand.protocol.tasks.change import TaskChange, change_of, changed_groups
from errand.protocol.tasks.task import Task
from errand.system.listeners import Listeners

# Only the end of a running call's output is sent; the result has all of it.
_MAX_OUTPUT_LENGTH = 64 * 1024

# Node id and block; or task and call id, since models reuse call ids across tasks, with `_OUTPUT`; or task id with
# `_READING`.
_Key: TypeAlias = tuple[str, int]
_OUTPUT, _READING = -1, -2

# Two frames of a 60 Hz screen: text looks continuous, and 20 streams of 100 tokens/s make 600 messages/s, not 2,000.
_FLUSH_SECONDS = 0.033

# Number of events available for replay; older clients take a snapshot. The log stores every node a second time.
_MAX_EVENTS = 20_000
_PRUNE_EVERY = 1_000

_ENCODER = msgspec.json.Encoder()


@dataclass(slots=True)
class _Pending:
    first: Delta
    pieces: list[str]
    after: int

    def add(self, delta: Delta) -> None:
        if not isinstance(delta, PromptReading):
            self.pieces.append(delta.text)

    def joined(self) -> Delta:
        """Return one delta for all that have come."""
        match self.first:
            case PromptReading():
                return self.first
            case TextDelta():
                return msgspec.structs.replace(self.first, text="".join(self.pieces))
            case ToolOutput():
                return msgspec.structs.replace(self.first, text="".join(self.pieces)[-_MAX_OUTPUT_LENGTH:])


class DeltaStream:
    """Joins the deltas of about 33 ms and sends them; knows the text already sent of streaming nodes."""

    def __init__(self, listeners: "Listeners[[Delta, bytes]]", committed: int) -> None:
        """`committed` is the newest event sent to the listeners."""
        self._listeners = listeners
        self._committed = committed
        self._pending: dict[_Key, _Pending] = {}
        self._sent: dict[_Key, tuple[TextDelta, list[str]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_flush_due = False

    @property
    def is_empty(self) -> bool:
        return not self._pending

    def add(self, delta: Delta, after: int) -> None:
        """Send `delta`, joined with what follows for the same block or call, once event number `after` is committed."""
        key = _key(delta)
        pending = self._pending.get(key)
        if pending is None or _replaces(delta):
            self._drop_from(key) if _replaces(delta) else None
            pending = self._pending[key] = _Pending(delta, [], after)
        pending.add(delta)
        if self._timer is None and not self._is_flush_due:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.send)

    def committed(self, sequence: int) -> None:
        """Event number `sequence` was sent. A delta must not overtake the event that announced its node."""
        self._committed = sequence
        if self._is_flush_due:
            self.send()

    def send(self) -> None:
        """Send what may be sent now, one delta for each block and call; the rest follows its event."""
        self.close()
        ready = [(key, pending) for key, pending in self._pending.items() if pending.after <= self._committed]
        for key, pending in ready:
            del self._pending[key]
            delta = pending.joined()
            if isinstance(delta, TextDelta):
                self._sent.setdefault(key, (delta, []))[1].append(delta.text)
            data = _ENCODER.encode(Notice("delta", delta))
            self._listeners.notify(delta, data)
        self._is_flush_due = bool(self._pending)

    def text_so_far(self, conversation_id: str | None) -> list[TextDelta]:
        """Return the text already sent of streaming nodes, from offset 0; None means all conversations.

        For a client that connects in the middle.
        """
        return [
            msgspec.structs.replace(first, offset=0, text="".join(pieces))
            for first, pieces in self._sent.values()
            if conversation_id in (None, first.conversation_id)
        ]

    def with_text_so_far(self, node: Node) -> Node:
        """Return a streaming node with the text that was sent of it: the deltas to come continue that text.

        A call that is being written is an empty text, so that each block keeps its number.
        """
        last = max((block for node_id, block in self._sent if node_id == node.id), default=None)
        if node.status != "streaming" or last is None:
            return node
        blocks: list[Block] = []
        for number in range(last + 1):
            first, pieces = self._sent.get((node.id, number), (None, ()))
            text = "" if first is None or first.kind == "toolCall" else "".join(pieces)
            is_thinking = first is not None and first.kind == "thinking"
            blocks.append(ThinkingBlock(text=text) if is_thinking else TextBlock(text=text))
        return msgspec.structs.replace(node, blocks=tuple(blocks))

    def finish(self, node: Node) -> None:
        """Drop the deltas of a node that is complete: the node itself has the text."""
        if node.status == "streaming":
            return
        self._drop_from((node.id, 0))
        for block in node.blocks:
            if isinstance(block, ToolResultBlock):
                self._pending.pop(_call_key(node.task_id or "", block.call_id), None)

    def close(self) -> None:
        """Stop the timer. Unsent deltas are dropped: they are not part of the stored log."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop_from(self, start: _Key) -> None:
        """Drop a node's blocks from one on: a retry voids the later ones too."""
        for by_key in (self._pending, self._sent):
            for key in [key for key in by_key if key[0] == start[0] and key[1] >= start[1]]:
                del by_key[key]


def _key(delta: Delta) -> _Key:
    match delta:
        case TextDelta():
            return delta.node_id, delta.block
        case ToolOutput():
            return _call_key(delta.task_id, delta.call_id)
        case PromptReading():
            return delta.task_id, _READING


def _call_key(task_id: str, call_id: str) -> _Key:
    return f"{task_id} {call_id}", _OUTPUT


def _replaces(delta: Delta) -> bool:
    """Return True if a delta voids the earlier ones of its key: a reply starts again, and all else is sent whole."""
    return not isinstance(delta, TextDelta) or delta.offset == 0


@dataclass(slots=True)
class _PublishedTask:
    """The last published state of a task, whose event number `whole_sequence` had all of it.

    `uncommitted` are the groups of each change whose commit is not known, by the number of its event: an event that
    cannot be stored is never sent.
    """

    task: Task
    whole_sequence: int
    is_whole_sent: bool = False
    uncommitted: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])


class TaskChanges:
    """A filter of the events of tasks: it leaves out the groups that did not change.

    What is published of a task first is whole, and what follows its end.
    """

    def __init__(self) -> None:
        self._published: dict[str, _PublishedTask] = {}

    def publish(self, task: Task, sequence: int) -> TaskChange | None:
        """Return what the event with this number has of a task; None for all of it."""
        before = self._published.get(task.id)
        groups = changed_groups(before.task, task) if before is not None and before.is_whole_sent else None
        if task.outcome.ended_at is not None:
            self._published.pop(task.id, None)
        elif before is None or groups is None:
            self._published[task.id] = _PublishedTask(task, whole_sequence=sequence)
        if before is None or groups is None:
            return None
        repeated = groups.union(*before.uncommitted.values())
        before.task = task
        before.uncommitted[sequence] = repeated
        return change_of(task, repeated)

    def committed(self, task: Task, sequence: int) -> None:
        """The event with this number is stored: it has what earlier ones may have lost."""
        published = self._published.get(task.id)
        if published is not None and sequence >= published.whole_sequence:
            published.is_whole_sent = True
            for number in [number for number in published.uncommitted if number <= sequence]:
                del published.uncommitted[number]


class Frame:
    """The notice of a stored event for the wire, where each call has its display.

    Made on first use and shared by all clients. `whole` has all of a task also if the event leaves out what did not
    change.
    """

    __slots__ = ("_data", "_logged", "_record", "_whole")

    def __init__(self, logged: LogRecord | EventRecord, record: EventRecord | None = None) -> None:
        self._logged = logged
        self._record = record
        self._data: bytes | None = None
        self._whole: bytes | None = None

    @property
    def data(self) -> bytes:
        if self._data is None:
            self._data = _encoded(self._logged)
        return self._data

    @property
    def whole(self) -> bytes:
        if self._record is None or not isinstance(self._logged.event, TaskChange):
            return self.data
        if self._whole is None:
            self._whole = _encoded(self._record)
        return self._whole


def _encoded(record: LogRecord | EventRecord) -> bytes:
    event = record.event if isinstance(record.event, TaskChange) else event_with_displays(record.event)
    return _ENCODER.encode(Notice("event", LogRecord(sequence=record.sequence, epoch=record.epoch, event=event)))


class EventListener(Protocol):
    """A client connection. Called in order; must not block."""

    def on_event(self, record: EventRecord, frame: Frame) -> None: ...

    def on_delta(self, delta: Delta, data: bytes) -> None:
        """`data` is the notice for the wire."""
        ...


class EventLog:
    """The engine's event log. `head` is the newest number assigned, `committed` the newest sent to clients.

    `deltas` sends streamed text, which is not stored.
    """

    def __init__(
        self, journal: Journal, epoch: str, head: int, note: Callable[[int], None] = lambda sequence: None
    ) -> None:
        """`note` is called with the number of each stored event."""
        self.epoch = epoch
        self.head = head
        self.committed = head
        self._journal = journal
        self._note = note
        self._on_event = Listeners[[EventRecord, Frame]]()
        self._on_delta = Listeners[[Delta, bytes]]()
        self.deltas = DeltaStream(self._on_delta, head)
        self._task_changes = TaskChanges()

    @property
    def client_count(self) -> int:
        return len(self._on_delta)

    def publish(
        self,
        event: Event,
        *,
        also: tuple[Write, ...] = (),
        on_commit: Callable[[], None] | None = None,
        after: JournalChange | None = None,
        is_stored: bool = False,
    ) -> JournalChange:
        """Number the event and queue its writes; clients get it after the commit. Does not wait.

        `also` is committed atomically with it. `on_commit` is called after the commit, before a later `flush` returns.
        `is_stored`: the change `after` stores what the event carries.
        An event is never sent if it, or the change `after`, fails to be stored: its number is skipped.
        """
        record = EventRecord(sequence=self.head + 1, epoch=self.epoch, event=event)
        logged = self._logged(record)
        writes = (events.save(logged),) if is_stored else event_writes(record, logged)
        frame = Frame(logged, record)
        change = self._journal.put(
            *also, *writes, after=after, on_commit=lambda: self._on_commit(record, frame, on_commit)
        )
        self.head = record.sequence
        if self.head % _PRUNE_EVERY == 0:
            self._journal.put(events.prune(_MAX_EVENTS))
        if isinstance(event, TaskMessage):
            self.deltas.finish(event.node)
        return change

    async def flush(self, *, durable: bool = True) -> None:
        """Return when all events so far are committed, see `Journal.flush`. Raises `StorageError` on failure."""
        await self._journal.flush(durable=durable)

    def follow(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` with every event from now on, once it is stored; returns the unsubscriber."""
        return self._on_event.add(lambda record, frame: listener(record.event))

    def attach(self, listener: EventListener) -> Callable[[], None]:
        """Pass every event and delta from now on to `listener`; returns the unsubscriber."""
        removers = (self._on_event.add(listener.on_event), self._on_delta.add(listener.on_delta))

        def remove() -> None:
            for remover in removers:
                remover()

        return remove

    def _logged(self, record: EventRecord) -> LogRecord:
        """Return what is stored and sent of an event."""
        event = record.event
        change = self._task_changes.publish(event.task, record.sequence) if isinstance(event, TaskUpdate) else None
        return LogRecord(sequence=record.sequence, epoch=record.epoch, event=event if change is None else change)

    def _on_commit(self, record: EventRecord, frame: Frame, then: Callable[[], None] | None) -> None:
        self.committed = record.sequence
        if isinstance(record.event, TaskUpdate):
            self._task_changes.committed(record.event.task, record.sequence)
        self._note(record.sequence)
        try:
            if then is not None:
                then()
        finally:
            try:
                self._on_event.notify(record, frame)
            finally:
                self.deltas.committed(record.sequence)
