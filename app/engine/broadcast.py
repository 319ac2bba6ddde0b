"""The event log: numbers events, commits them with what they change, then hands them to the clients in order.

What a client wants and how much it may queue is the server's business; how rows are written is storage's.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import msgspec

from app.engine.deltas import DeltaBuffer
from app.engine.storage import events
from app.engine.storage.apply import writes_for
from app.engine.storage.journal import Change, Journal
from app.engine.storage.write import Write
from app.listeners import Listeners
from app.protocol.events import Delta, Event, EventRecord, TaskMessage, TextDelta
from app.protocol.wire import Notice

# Two frames of a 60 Hz screen: text looks continuous, and 20 streams of 100 tokens/s make 600 messages/s, not 2,000.
_FLUSH_SECONDS = 0.033

# Replay reaches this far back; older clients take a snapshot. The log holds every node a second time.
_KEPT = 20_000
_PRUNED_EACH = 1_000

_ENCODER = msgspec.json.Encoder()


class Frame:
    """A notice as it goes over the wire, encoded when the first client wants it and once for all."""

    __slots__ = ("_data", "_notice")

    def __init__(self, notice: Notice) -> None:
        self._notice = notice
        self._data: bytes | None = None

    @property
    def data(self) -> bytes:
        if self._data is None:
            self._data = _ENCODER.encode(self._notice)
        return self._data


class Listener(Protocol):
    """A client's end. Called in order; must not wait."""

    def on_event(self, record: EventRecord, frame: Frame) -> None: ...

    def on_delta(self, delta: Delta, frame: Frame) -> None: ...


class EventLog:
    """One for each engine. `head` is the newest number given out, `committed` the newest that clients were sent."""

    def __init__(
        self, journal: Journal, epoch: str, head: int, note: Callable[[int], None] = lambda sequence: None
    ) -> None:
        """`note` is told the number of each event that is stored."""
        self.epoch = epoch
        self.head = head
        self.committed = head
        self._journal = journal
        self._note = note
        self._listeners = Listeners[Listener]()
        self._deltas = DeltaBuffer()
        self._timer: asyncio.TimerHandle | None = None
        self._due = False

    @property
    def listener_count(self) -> int:
        return len(self._listeners)

    def publish(
        self,
        event: Event,
        *,
        also: tuple[Write, ...] = (),
        on_commit: Callable[[], None] | None = None,
        after: Change | None = None,
    ) -> Change:
        """Number the event and queue its writes; clients get it once they are committed. Does not wait.

        `also` is committed with it, or neither is. Then `on_commit` is called, before a later `flush` returns. An event
        that cannot be stored, or whose `after` cannot, is never sent: its number is left out.
        """
        record = EventRecord(sequence=self.head + 1, epoch=self.epoch, event=event)
        *first, last = (*also, *writes_for(record))
        last = replace(last, on_commit=lambda: self._on_commit(record, on_commit))
        change = self._journal.put(*first, last, after=after)
        self.head = record.sequence
        if self.head % _PRUNED_EACH == 0:
            self._journal.put(events.prune(_KEPT))
        if isinstance(event, TaskMessage):
            self._deltas.finish(event.node)
        return change

    async def flush(self, *, durable: bool = True) -> None:
        """Return when all published so far is committed, see `Journal.flush`; `StorageError` when it could not be."""
        await self._journal.flush(durable=durable)

    def stream(self, delta: Delta) -> None:
        """Send more text about 33 ms from now, joined with what else comes for the same block or call until then."""
        self._deltas.add(delta, self.head)
        if self._timer is None and not self._due:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._on_timer)

    def so_far(self, conversation_id: str | None) -> list[TextDelta]:
        """Text already streamed of unfinished nodes, for a client that joins in the middle."""
        return self._deltas.so_far(conversation_id)

    def attach(self, listener: Listener) -> Callable[[], None]:
        """Hand every event and delta from now on to `listener`; returns what detaches it."""
        return self._listeners.add(listener)

    def close(self) -> None:
        """Stop the timer. Deltas not sent yet are dropped: they are not part of the record."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_commit(self, record: EventRecord, then: Callable[[], None] | None) -> None:
        self.committed = record.sequence
        self._note(record.sequence)
        try:
            if then is not None:
                then()
        finally:
            frame = Frame(Notice("event", record))
            self._listeners.tell(lambda listener: listener.on_event(record, frame))
            if self._due:
                self._send_deltas()

    def _on_timer(self) -> None:
        self._timer = None
        self._send_deltas()

    def _send_deltas(self) -> None:
        # A delta never overtakes the event that announced its node: what waits for a commit goes right after it.
        for delta in self._deltas.take(self.committed):
            self._send(delta, Frame(Notice("delta", delta)))
        self._due = not self._deltas.is_empty

    def _send(self, delta: Delta, frame: Frame) -> None:
        self._listeners.tell(lambda listener: listener.on_delta(delta, frame))
