"""What a client follows: which events and deltas a subscription covers. Sending them is the session's."""

from dataclasses import dataclass
from typing import Literal

from app.engine.storage.events import conversation_of
from app.protocol.events import Delta, Event, TaskMessage, TaskPlan

ALL = "all"


@dataclass(slots=True)
class Subscription:
    """`since` is the event after which everything covered was or will be delivered.

    Until it is `live`, events wait for the reply that carries the snapshot or follows the replay. `dropped` says
    that the client could not keep up. `agent_id` says whose branch a snapshot has.
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

    def covers_delta(self, delta: Delta) -> bool:
        return self.live and self.detail == "full" and self.scope in (ALL, delta.conversation_id)
