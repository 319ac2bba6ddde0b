"""One client as the server sees it: who it is, what it follows, what waits to be sent to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from app.engine.broadcast import EventLog, Frame
from app.engine.server.handshake import Handshake
from app.engine.server.outbox import Outbox
from app.engine.server.subscription import ALL, Subscription
from app.protocol.events import Delta, EventRecord, Resync
from app.protocol.wire import Notice

# While a snapshot is read, which takes milliseconds.
_MOST_HELD = 2_000


@dataclass(frozen=True, slots=True)
class _Held:
    record: EventRecord
    frame: Frame


class Session:
    """A `Listener` of the event log. `client_id` is empty until the client has called `initialize`."""

    def __init__(self, log: EventLog, outbox: Outbox, handshake: Handshake) -> None:
        self.client_id = ""
        self.client_name = ""
        self.environment: Mapping[str, str] = {}
        self.outbox = outbox
        self.handshake = handshake
        self._log = log
        self._subscriptions: dict[str, Subscription] = {}
        self._held: list[_Held] = []
        self._ready: list[Subscription] = []

    def on_event(self, record: EventRecord, frame: Frame) -> None:
        covering = [one for one in self._subscriptions.values() if _wants(one, record)]
        if any(one.live for one in covering):
            self._send(frame)
        elif covering and len(self._held) < _MOST_HELD:
            self._held.append(_Held(record, frame))
        elif covering:
            self._overflow()

    def on_delta(self, delta: Delta, frame: Frame) -> None:
        if any(one.covers_delta(delta) for one in self._subscriptions.values()):
            self.outbox.delta(frame.data)

    def follow(self, subscription: Subscription) -> None:
        """Hold what it covers from now on; it replaces the one of the same scope."""
        self._subscriptions[subscription.scope] = subscription

    def unfollow(self, scope: str) -> None:
        self._subscriptions.pop(scope, None)

    def replay(self, subscription: Subscription, records: Sequence[EventRecord]) -> int | None:
        """Send those of the log's records that the subscription covers and no other one has sent; returns how many.

        The last thing sent of any record is its newest state, also where others have sent some of it.
        None, and nothing is sent, when they would fill the queue: then a snapshot is the shorter way.
        """
        others = [one for one in self._subscriptions.values() if one is not subscription and one.live]
        missed = [record for record in records if subscription.covers(record.event)]
        # What another scope knew from a snapshot is old news: it comes again only with all that came after it.
        if not any(_knew(one, record) for one in others for record in missed):
            missed = [record for record in missed if not any(_wants(one, record) for one in others)]
        if len(missed) > self.outbox.free_messages // 2:
            return None
        for record in missed:
            self._send(Frame(Notice("event", record)))
        return len(missed)

    def go_live_after_reply(self, subscription: Subscription) -> None:
        """The reply to the subscription is made; once it is sent, what was held follows it."""
        self._ready.append(subscription)

    def reply(self, data: bytes) -> None:
        self.outbox.reply(data)
        ready, self._ready = self._ready, []
        for subscription in ready:
            if subscription.dropped:
                self._tell_resync()
            elif self._subscriptions.get(subscription.scope) is subscription:
                self._go_live(subscription)

    def _go_live(self, subscription: Subscription) -> None:
        subscription.live = True
        held = self._held
        self._held = [item for item in held if not _wants(subscription, item.record)]
        for item in held:
            if subscription.live and _wants(subscription, item.record):
                self._send(item.frame)
        if subscription.live and subscription.detail == "full":
            for delta in self._log.so_far(None if subscription.scope == ALL else subscription.scope):
                self.outbox.delta(Frame(Notice("delta", delta)).data)

    def _send(self, frame: Frame) -> None:
        if not self.outbox.event(frame.data):
            self._overflow()

    def _overflow(self) -> None:
        """Forget what the client follows and say so: it starts over with a snapshot when it can take one."""
        self.outbox.drop_events()
        for subscription in self._subscriptions.values():
            subscription.live, subscription.dropped = False, True
        self._subscriptions.clear()
        self._held.clear()
        self._tell_resync()

    def _tell_resync(self) -> None:
        notice = Notice("resync", Resync(reason="This client was too slow: events were dropped. Subscribe again."))
        self.outbox.reply(msgspec.json.encode(notice))


def _wants(subscription: Subscription, record: EventRecord) -> bool:
    return record.sequence > subscription.since and subscription.covers(record.event)


def _knew(subscription: Subscription, record: EventRecord) -> bool:
    return record.sequence <= subscription.since and subscription.covers(record.event)
