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
        """The cached value, or the result of `make`, which is then cached."""
        key = id(key_object)
        kept = self._values.get(key)
        if kept is not None:
            return kept[1]
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
        """How many of the messages the value covers, and the value. None if these are others."""
        kept = self._values.get(id(messages[0])) if messages else None
        if kept is None or len(kept[0]) > len(messages) or not all(map(is_, map(call, kept[0]), messages)):
            return None
        return len(kept[0]), kept[1]

    def put(self, messages: Sequence[ModelMessage], value: V, known: int = 0) -> None:
        """Replaces the value of the conversation. `known`: how many messages `find` said that the old one covers."""
        if not messages:
            return
        key = id(messages[0])
        kept = self._values.get(key) if known else None
        if kept is not None:
            references = kept[0][:known]
        else:
            references = (weakref.ref(messages[0], lambda _: self._values.pop(key, None)),)
        self._values[key] = ((*references, *map(weakref.ref, messages[len(references) :])), value)
