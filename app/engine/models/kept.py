"""What was made of a message, kept for as long as the message lives: each model call sends the whole history again."""

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from app.engine.messages import AssistantMessage, ToolResultMessage

V = TypeVar("V")


class Kept(Generic[V]):
    """Values by the identity of a message, which is frozen: the same message always makes the same value."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[AssistantMessage | ToolResultMessage], V]] = {}

    def of(self, message: AssistantMessage | ToolResultMessage, make: Callable[[], V]) -> V:
        """The kept value, or what `make` gives, which is kept from now on."""
        key = id(message)
        kept = self._values.get(key)
        if kept is not None:
            return kept[1]
        value = make()
        self._values[key] = (weakref.ref(message, lambda _: self._values.pop(key, None)), value)
        return value
