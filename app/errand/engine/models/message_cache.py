"""Caches values derived from a message or request for as long as that object lives."""

import weakref
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from errand.engine.core.messages import AssistantMessage, ToolResultMessage
from errand.engine.models.base import ModelRequest

V = TypeVar("V")
CacheKey: TypeAlias = AssistantMessage | ToolResultMessage | ModelRequest


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
