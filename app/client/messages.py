"""What a connection tells those who listen: the engine's notices, and how the line itself is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from app.protocol.events import Delta, EventRecord, Resync
from app.protocol.health import HealthUpdate


@dataclass(frozen=True, slots=True)
class Lost:
    """The line is down; the connection tries again by itself. It comes once more, with `gave_up`, when calls fail."""

    reason: str
    gave_up: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """The line is up again, calls were sent again and all that was missed has come.

    What could not be replayed was announced by a `Resync` before.
    """

    instance_id: str


Message: TypeAlias = EventRecord | Delta | Resync | HealthUpdate | Lost | Restored
Listener: TypeAlias = Callable[[Message], None]
