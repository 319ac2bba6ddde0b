"""Caches values derived from messages, tools and requests for as long as those objects live."""

import weakref
from collections.abc import Callable, Sequence
from operator import call, is_
from typing import Generic, TypeAlias, TypeVar

from errand.engine.core.messages import ModelMessage
from errand.engine.models.base import ModelRequest, ToolDefinition

V = TypeVar("V")
CacheKey: TypeAlias = ModelMessage | ToolDefinition | ModelRequest


class MessageCache(Generic[V]):
    """Values by the identity of a frozen object, which always yields the same value."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[CacheKey], V]] = {}

    def get(self, key_object: CacheKey, make: Callable[[], V]) -> V:
        """Return the cached value, or the result of `make`, which is then cached."""
        key = id(key_object)
        entry = self._values.get(key)
        if entry is not None:
            return entry[1]
        value = make()
        self._values[key] = (weakref.ref(key_object, lambda _: self._values.pop(key, None)), value)
        return value


class BeginningCache(Generic[V]):
    """One value for the beginning of each conversation: most requests only add messages to the one before.

    A value must not hold the messages, since it is kept as long as the first of them lives.
    """

    def __init__(self) -> None:
        self._values: dict[int, tuple[tuple[weakref.ref[ModelMessage], ...], V]] = {}

    def find(self, messages: Sequence[ModelMessage]) -> tuple[int, V] | None:
        """Return how many of the messages the value covers, and the value; None if these are other messages."""
        entry = self._values.get(id(messages[0])) if messages else None
        if entry is None or len(entry[0]) > len(messages) or not all(map(is_, map(call, entry[0]), messages)):
            return None
        return len(entry[0]), entry[1]

    def put(self, messages: Sequence[ModelMessage], value: V, covered: int = 0) -> None:
        """Replace the value of the conversation. `covered`: the messages that the old one covers, from `find`."""
        if not messages:
            return
        key = id(messages[0])
        entry = self._values.get(key) if covered else None
        if entry is not None:
            references = entry[0][:covered]
        else:
            references = (weakref.ref(messages[0], lambda _: self._values.pop(key, None)),)
        self._values[key] = ((*references, *map(weakref.ref, messages[len(references) :])), value)
