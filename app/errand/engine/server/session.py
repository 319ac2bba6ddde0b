"""One client's session: its subscriptions and outgoing messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from errand.engine.event_log import EventLog, Frame
from errand.engine.server.authentication import Handshake
from errand.engine.server.outbox import MessageKind, Outbox
from errand.engine.tools.shell.login_environment import LoginEnvironment
from errand.protocol.events import (
    Delta,
    Event,
    EventRecord,
    LogRecord,
    Resync,
    TaskMessage,
    TaskPlan,
    TaskUpdate,
    conversation_of,
)
from errand.protocol.methods import Notice
from errand.protocol.tasks.change import TaskChange

ALL = "all"

# While a snapshot is read, which takes milliseconds.
_MAX_HELD_EVENTS = 2_000


@dataclass(slots=True)
class Subscription:
    """`since` is the event after which every covered event was or will be delivered.

    Until it is `live`, events are held for the reply that carries the snapshot or follows the replay. `dropped`: the
    client could not keep up. `agent_id` selects the branch of a snapshot.
    """

    scope: str
    detail: Literal["summary", "full"]
    since: int
    live: bool = False
    dropped: bool = False
    agent_id: str | None = None

    def covers(self, event: Event | TaskChange) -> bool:
        if self.detail == "summary" and isinstance(event, TaskMessage | TaskPlan):
            return False
        return self.scope == ALL or self.scope == conversation_of(event)


@dataclass(frozen=True, slots=True)
class _HeldEvent:
    record: EventRecord
    frame: Frame


class ClientSession:
    """A `Listener` of the event log. `client_id` is empty until the client has called `initialize`."""

    def __init__(self, log: EventLog, outbox: Outbox, handshake: Handshake) -> None:
        self.client_id = ""
        self.client_name = ""
        self.environment: Mapping[str, str] = {}
        self.is_from_desktop = False
        self.outbox = outbox
        self.handshake = handshake
        self._log = log
        self._subscriptions: dict[str, Subscription] = {}
        self._held_events: list[_HeldEvent] = []
        self._ready: list[Subscription] = []
        # The client was sent all of these tasks, and each change since.
        self._known_tasks: set[str] = set()

    async def environment_of_commands(self, login: LoginEnvironment, *, wait: bool) -> Mapping[str, str]:
        """`wait`: a moment for the login shell, if it is being read."""
        return await login.added_to(self.environment, wait=wait) if self.is_from_desktop else self.environment

    def on_event(self, record: EventRecord, frame: Frame) -> None:
        covering = [
            subscription for subscription in self._subscriptions.values() if _is_undelivered(subscription, record)
        ]
        if any(subscription.live for subscription in covering):
            self._send(record, frame)
        elif covering and len(self._held_events) < _MAX_HELD_EVENTS:
            self._held_events.append(_HeldEvent(record, frame))
        elif covering:
            self._overflow()
        elif isinstance(record.event, TaskUpdate):
            self._known_tasks.discard(record.event.task.id)

    def on_delta(self, delta: Delta, data: bytes) -> None:
        scopes = (ALL, delta.conversation_id)
        if any(
            subscription.live and subscription.detail == "full" and subscription.scope in scopes
            for subscription in self._subscriptions.values()
        ):
            self.outbox.put(MessageKind.DELTA, data)

    def follow(self, subscription: Subscription) -> None:
        """Hold covered events from now on; replaces the subscription with the same scope."""
        self._subscriptions[subscription.scope] = subscription
        self._known_tasks.clear()

    def unfollow(self, scope: str) -> None:
        self._subscriptions.pop(scope, None)
        self._known_tasks.clear()

    def replay(self, subscription: Subscription, records: Sequence[LogRecord]) -> int | None:
        """Send covered records that no other subscription has sent; returns how many.

        The last version sent of any object is its newest state, even if other subscriptions have sent some records.
        Returns None and sends nothing if the records would fill the queue: a snapshot is shorter then.
        """
        others = [other for other in self._subscriptions.values() if other is not subscription and other.live]
        missed = [record for record in records if subscription.covers(record.event)]
        # Records that another scope had in its snapshot are outdated: send them only together with all later ones.
        if not any(_was_delivered(other, record) for other in others for record in missed):
            missed = [record for record in missed if not any(_is_undelivered(other, record) for other in others)]
        if len(missed) > self.outbox.free_messages // 2:
            return None
        for record in missed:
            self._put(Frame(record).data)
        return len(missed)

    def go_live_after_reply(self, subscription: Subscription) -> None:
        """Send the held events after the reply to this subscription."""
        self._ready.append(subscription)

    def reply(self, data: bytes) -> None:
        self.outbox.put(MessageKind.REPLY, data)
        ready, self._ready = self._ready, []
        for subscription in ready:
            if subscription.dropped:
                self._send_resync()
            elif self._subscriptions.get(subscription.scope) is subscription:
                self._go_live(subscription)

    def _go_live(self, subscription: Subscription) -> None:
        self._known_tasks.clear()  # the snapshot or replay may be older than what another subscription has sent
        subscription.live = True
        held = self._held_events
        self._held_events = [item for item in held if not _is_undelivered(subscription, item.record)]
        for item in held:
            if subscription.live and _is_undelivered(subscription, item.record):
                self._send(item.record, item.frame)
        if subscription.live and subscription.detail == "full":
            for delta in self._log.deltas.text_so_far(None if subscription.scope == ALL else subscription.scope):
                self.outbox.put(MessageKind.DELTA, msgspec.json.encode(Notice("delta", delta)))

    def _send(self, record: EventRecord, frame: Frame) -> None:
        """Send an event; of a task that the client may not know, all of it."""
        data = frame.data
        if isinstance(record.event, TaskUpdate):
            task = record.event.task
            if task.id not in self._known_tasks:
                data = frame.whole
            if task.outcome.ended_at is None:
                self._known_tasks.add(task.id)
            else:
                self._known_tasks.discard(task.id)
        self._put(data)

    def _put(self, data: bytes) -> None:
        if not self.outbox.put(MessageKind.EVENT, data):
            self._overflow()

    def _overflow(self) -> None:
        """Drop all subscriptions and notify the client: it starts over with a snapshot once it can receive one."""
        self.outbox.drop_events()
        self._known_tasks.clear()
        for subscription in self._subscriptions.values():
            subscription.live, subscription.dropped = False, True
        self._subscriptions.clear()
        self._held_events.clear()
        self._send_resync()

    def _send_resync(self) -> None:
        notice = Notice("resync", Resync(reason="This client was too slow: events were dropped. Subscribe again."))
        self.outbox.put(MessageKind.REPLY, msgspec.json.encode(notice))


def _is_undelivered(subscription: Subscription, record: LogRecord | EventRecord) -> bool:
    return record.sequence > subscription.since and subscription.covers(record.event)


def _was_delivered(subscription: Subscription, record: LogRecord | EventRecord) -> bool:
    return record.sequence <= subscription.since and subscription.covers(record.event)
