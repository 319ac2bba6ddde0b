"""What a connection follows and what it tells its listeners."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.protocol.engine import HealthUpdate, SubscribeResult
from app.protocol.events import Delta, EventRecord, Resync

Detail = Literal["summary", "full"]


@dataclass(frozen=True, slots=True)
class FollowedScope:
    """`head` is the event up to which the scope was known when it was followed."""

    scope: str
    detail: Detail
    epoch: str
    head: int


class FollowedScopes:
    """The engine sends events in order to all scopes alike, so one position holds for all that are followed."""

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

    def after(self, follow: FollowedScope) -> int:
        """The event after which this scope may have missed some."""
        return max(follow.head, self._position)

    def saw(self, record: EventRecord) -> None:
        self._latest = record.sequence
        if not self._catching_up:
            self._position = record.sequence

    def begin_catching_up(self) -> None:
        """While scope after scope is replayed the position stands: what one scope has seen another may have missed."""
        self._catching_up = True

    def caught_up(self) -> None:
        self._catching_up = False
        self._position = self._latest


@dataclass(frozen=True, slots=True)
class ConnectionDown:
    """The line is down; the connection tries again by itself. It comes once more, with `gave_up`, when calls fail."""

    reason: str
    gave_up: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionRestored:
    """The line is up again, calls were sent again and all that was missed has come.

    What could not be replayed was announced by a `Resync` before.
    """

    instance_id: str


ConnectionMessage: TypeAlias = EventRecord | Delta | Resync | HealthUpdate | ConnectionDown | ConnectionRestored
ConnectionListener: TypeAlias = Callable[[ConnectionMessage], None]
