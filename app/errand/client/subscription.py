"""The subscriptions of a connection, and the messages to its listeners."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from errand.protocol.engine import HealthUpdate, SubscribeResult
from errand.protocol.events import Delta, EventRecord, LogRecord, Resync

Detail = Literal["summary", "full"]


@dataclass(frozen=True, slots=True)
class FollowedScope:
    """`head` is the newest known event of the scope when it was subscribed."""

    scope: str
    detail: Detail
    epoch: str
    head: int


class FollowedScopes:
    """The engine sends events in order to all scopes alike, so one position is valid for all of them."""

    def __init__(self) -> None:
        self._follows: dict[str, FollowedScope] = {}
        self._position = 0
        self._latest = 0
        self._catching_up = False

    @property
    def all(self) -> tuple[FollowedScope, ...]:
        return tuple(self._follows.values())

    def add(self, scope: str, detail: Detail, result: SubscribeResult) -> None:
        self._follows[scope] = FollowedScope(scope, detail, result.epoch, result.head)

    def drop(self, scope: str) -> None:
        self._follows.pop(scope, None)

    def last_received(self, follow: FollowedScope) -> int:
        """Return the last event that this scope is known to have received."""
        return max(follow.head, self._position)

    def record_event(self, record: LogRecord) -> None:
        self._latest = record.sequence
        if not self._catching_up:
            self._position = record.sequence

    def begin_catching_up(self) -> None:
        """Freeze the position while scopes are replayed one by one: one may miss an event that another has seen."""
        self._catching_up = True

    def caught_up(self) -> None:
        self._catching_up = False
        self._position = self._latest


@dataclass(frozen=True, slots=True)
class ConnectionDown:
    """The connection is lost; it reconnects by itself. Sent once more, with `gave_up`, when calls start to fail."""

    reason: str
    gave_up: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionRestored:
    """The connection is restored: calls were sent again and all missed events have arrived.

    A preceding `Resync` announced events that could not be replayed.
    """

    instance_id: str


ConnectionMessage: TypeAlias = EventRecord | Delta | Resync | HealthUpdate | ConnectionDown | ConnectionRestored
ConnectionListener: TypeAlias = Callable[[ConnectionMessage], None]
