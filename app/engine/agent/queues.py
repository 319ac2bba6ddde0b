"""A queue of messages that wait for their turn: steering and follow-ups."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from app.engine.messages import Message

QueueMode: TypeAlias = Literal["one_at_a_time", "all"]


class MessageQueue:
    """`mode` is read at each poll: it says whether `take` gives the first message or everything."""

    def __init__(self, mode: QueueMode) -> None:
        self.mode: QueueMode = mode
        self._waiting: list[Message] = []

    @property
    def waiting(self) -> tuple[Message, ...]:
        return tuple(self._waiting)

    def put(self, message: Message) -> None:
        self._waiting.append(message)

    def put_back(self, messages: Sequence[Message]) -> None:
        """Return messages that were taken but not delivered, to the front."""
        self._waiting[:0] = messages

    def take(self) -> tuple[Message, ...]:
        count = len(self._waiting) if self.mode == "all" else 1
        taken = tuple(self._waiting[:count])
        del self._waiting[:count]
        return taken

    def clear(self) -> None:
        self._waiting.clear()
