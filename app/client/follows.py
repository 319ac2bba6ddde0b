"""What a connection follows, and from which event on it has to catch up after a loss."""

from dataclasses import dataclass
from typing import Literal

from app.protocol.engine import SubscribeResult
from app.protocol.events import EventRecord

Detail = Literal["summary", "full"]


@dataclass(frozen=True, slots=True)
class Follow:
    """`head` is the event up to which the scope was known when it was followed."""

    scope: str
    detail: Detail
    epoch: str
    head: int


class Follows:
    """The engine sends events in order to all scopes alike, so one position holds for all that are followed."""

    def __init__(self) -> None:
        self._follows: dict[str, Follow] = {}
        self._position = 0
        self._latest = 0
        self._catching_up = False

    @property
    def all(self) -> tuple[Follow, ...]:
        return tuple(self._follows.values())

    def add(self, scope: str, detail: Detail, result: SubscribeResult) -> None:
        self._follows[scope] = Follow(scope, detail, result.epoch, result.head)

    def drop(self, scope: str) -> None:
        self._follows.pop(scope, None)

    def after(self, follow: Follow) -> int:
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
