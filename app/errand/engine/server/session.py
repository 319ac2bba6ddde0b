"""One client's session: handshake, subscriptions and outgoing messages."""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from errand.engine.core.errors import Conflict, InvalidParams
from errand.engine.event_log import EventLog, Frame
from errand.engine.server.endpoint_file import new_token
from errand.engine.server.outbox import MessageKind, Outbox
from errand.engine.storage.records.events import conversation_of
from errand.engine.tools.shell.login_environment import LoginEnvironment
from errand.listeners import Listeners
from errand.local_trust import is_valid_proof, new_nonce, proof
from errand.protocol.events import Delta, Event, EventRecord, Resync, TaskMessage, TaskPlan
from errand.protocol.methods import Notice

_SHORTEST, _LONGEST = 16, 200
_MOST_FAILURES = 5

ALL = "all"

# While a snapshot is read, which takes milliseconds.
_MOST_HELD = 2_000


def refuse(headers: Mapping[str, str], port: int) -> tuple[int, str] | None:
    """The HTTP status and text of a refusal; None if the client may connect.

    The exact Host prevents DNS rebinding, the Origin excludes pages of other sites; programs send no Origin.
    """
    if headers.get("Host", "") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
        return 403, f"Wrong Host. Use 127.0.0.1:{port}."
    if headers.get("Origin") not in (None, f"http://127.0.0.1:{port}"):
        return 403, "Pages of other sites may not use the engine."
    return None


class AccessToken:
    """The token that clients prove to know. `announce` writes a new one where clients find it."""

    def __init__(self, value: str, announce: Callable[[str], None]) -> None:
        self.value = value
        self.rotated = Listeners[[]]()
        self._announce = announce

    def rotate(self, keep: "Handshake | None" = None) -> None:
        """Replace the token: from now on no client that proved an older one is served, except for `keep`."""
        new = new_token()
        self._announce(new)
        self.value = new
        if keep is not None:
            keep.renew()
        self.rotated.notify()


class Handshake:
    """The handshake of one connection. `on_passed` is called once the client has proved that it knows the token."""

    def __init__(self, token: AccessToken, on_passed: Callable[[], None]) -> None:
        self._token = token
        self._on_passed = on_passed
        self._nonces: tuple[str, str] | None = None
        self._proved = ""
        self._failures = 0

    @property
    def holds(self) -> bool:
        """True while the token that the client proved is the current one."""
        return hmac.compare_digest(self._proved, self._token.value)

    @property
    def is_exhausted(self) -> bool:
        """True for a client that has given too many wrong proofs."""
        return self._failures >= _MOST_FAILURES

    def rotate(self) -> None:
        """Replace the token on behalf of this client, which is served further."""
        self._token.rotate(self)

    def renew(self) -> None:
        """Count as having proved the current token."""
        self._proved = self._token.value

    def challenge(self, nonce: str) -> tuple[str, str]:
        """Returns our nonce, and the proof that we know the token."""
        if not _SHORTEST <= len(nonce) <= _LONGEST:
            raise InvalidParams(f"nonce: a random text of {_SHORTEST} to {_LONGEST} characters.")
        own = new_nonce()
        self._nonces = nonce, own
        return own, proof(self._token.value, "answers", nonce, own)

    def check(self, given: str) -> None:
        """Raises `InvalidParams` or `Conflict` unless the client has proved that it knows the token."""
        if self._nonces is None:
            raise Conflict("Call `challenge` first: its answer is what the proof is made of.")
        if not is_valid_proof(given, self._token.value, "asks", *self._nonces):
            self._failures += 1
            raise InvalidParams("proof: wrong. The endpoint file in the data directory's run folder has the token.")
        self.renew()
        self._on_passed()


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

    def covers(self, event: Event) -> bool:
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

    async def environment_of_commands(self, login: LoginEnvironment, *, wait: bool) -> Mapping[str, str]:
        """`wait`: a moment for the login shell, if it is being read."""
        return await login.added_to(self.environment, wait=wait) if self.is_from_desktop else self.environment

    def on_event(self, record: EventRecord, frame: Frame) -> None:
        covering = [one for one in self._subscriptions.values() if _is_undelivered(one, record)]
        if any(one.live for one in covering):
            self._send(frame)
        elif covering and len(self._held_events) < _MOST_HELD:
            self._held_events.append(_HeldEvent(record, frame))
        elif covering:
            self._overflow()

    def on_delta(self, delta: Delta, data: bytes) -> None:
        scopes = (ALL, delta.conversation_id)
        if any(one.live and one.detail == "full" and one.scope in scopes for one in self._subscriptions.values()):
            self.outbox.put(MessageKind.DELTA, data)

    def follow(self, subscription: Subscription) -> None:
        """Hold covered events from now on; replaces the subscription with the same scope."""
        self._subscriptions[subscription.scope] = subscription

    def unfollow(self, scope: str) -> None:
        self._subscriptions.pop(scope, None)

    def replay(self, subscription: Subscription, records: Sequence[EventRecord]) -> int | None:
        """Send covered records that no other subscription has sent; returns how many.

        The last version sent of any object is its newest state, even if other subscriptions have sent some records.
        Returns None and sends nothing if the records would fill the queue: a snapshot is shorter then.
        """
        others = [one for one in self._subscriptions.values() if one is not subscription and one.live]
        missed = [record for record in records if subscription.covers(record.event)]
        # Records that another scope had in its snapshot are outdated: send them only together with all later ones.
        if not any(_was_delivered(one, record) for one in others for record in missed):
            missed = [record for record in missed if not any(_is_undelivered(one, record) for one in others)]
        if len(missed) > self.outbox.free_messages // 2:
            return None
        for record in missed:
            self._send(Frame(record))
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
        subscription.live = True
        held = self._held_events
        self._held_events = [item for item in held if not _is_undelivered(subscription, item.record)]
        for item in held:
            if subscription.live and _is_undelivered(subscription, item.record):
                self._send(item.frame)
        if subscription.live and subscription.detail == "full":
            for delta in self._log.deltas.text_so_far(None if subscription.scope == ALL else subscription.scope):
                self.outbox.put(MessageKind.DELTA, msgspec.json.encode(Notice("delta", delta)))

    def _send(self, frame: Frame) -> None:
        if not self.outbox.put(MessageKind.EVENT, frame.data):
            self._overflow()

    def _overflow(self) -> None:
        """Drop all subscriptions and notify the client: it starts over with a snapshot once it can receive one."""
        self.outbox.drop_events()
        for subscription in self._subscriptions.values():
            subscription.live, subscription.dropped = False, True
        self._subscriptions.clear()
        self._held_events.clear()
        self._send_resync()

    def _send_resync(self) -> None:
        notice = Notice("resync", Resync(reason="This client was too slow: events were dropped. Subscribe again."))
        self.outbox.put(MessageKind.REPLY, msgspec.json.encode(notice))


def _is_undelivered(subscription: Subscription, record: EventRecord) -> bool:
    return record.sequence > subscription.since and subscription.covers(record.event)


def _was_delivered(subscription: Subscription, record: EventRecord) -> bool:
    return record.sequence <= subscription.since and subscription.covers(record.event)
