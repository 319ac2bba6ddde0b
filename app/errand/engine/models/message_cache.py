"""Caches values derived from messages, tools and requests for as long as those objects live."""

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from operator import call, is_
from typing import Generic, TypeAlias, TypeVar

from errand.engine.core.messages import ModelMessage
from errand.engine.models.base import ModelRequest, ToolDefinition

V = TypeVar("V")
CacheKey: TypeAlias = ModelMessage | ToolDefinition | ModelRequest
K = TypeVar("K", bound=CacheKey)

# A conversation's values in a `BeginningCache`.
_MAX_VALUES = 2


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

    def get_each(self, key_objects: Sequence[K], make: Callable[[K], V]) -> list[V]:
        """Return the value of each object, as `get` does: quickly, for the many messages of a long conversation."""
        entries = map(self._values.get, map(id, key_objects))
        return [
            entry[1] if entry is not None else self.get(key_object, partial(make, key_object))
            for entry, key_object in zip(entries, key_objects, strict=True)
        ]


_References: TypeAlias = "tuple[weakref.ref[ModelMessage], ...]"


class BeginningCache(Generic[V]):
    """Values for the beginning of each conversation: most requests only add messages to the one before.

    There are two for each first message: a request is also looked at as it was sent, where later messages are others.
    A value must not hold the messages, since it is kept as long as the first of them lives.
    """

    def __init__(self) -> None:
        self._values: dict[int, list[tuple[_References, V]]] = {}

    def find(self, messages: Sequence[ModelMessage]) -> tuple[int, V] | None:
        """Return how many of the messages the value covers, and the value; None if these are other messages."""
        entries = self._values.get(id(messages[0]), ()) if messages else ()
        newest = next((entry for entry in reversed(entries) if _begins(messages, entry[0])), None)
        return None if newest is None else (len(newest[0]), newest[1])

    def put(self, messages: Sequence[ModelMessage], value: V, covered: int = 0) -> None:
        """Keep a value. It replaces the one that `find` returned, with as many messages `covered`, or the oldest."""
        if not messages:
            return
        key = id(messages[0])
        entries = self._values.setdefault(key, [])
        last = messages[covered - 1] if covered else None  # tells the ways apart: `find` has compared all others
        same = (at for at, (references, _) in enumerate(entries) if len(references) == covered)
        if (at := max((at for at in same if entries[at][0][-1]() is last), default=None)) is not None:
            references = entries.pop(at)[0]
        else:
            references = (weakref.ref(messages[0], lambda _: self._values.pop(key, None)),)
            del entries[: len(entries) - _MAX_VALUES + 1]
        entries.append(((*references, *map(weakref.ref, messages[len(references) :])), value))


def _begins(messages: Sequence[ModelMessage], references: _References) -> bool:
    return len(references) <= len(messages) and all(map(is_, map(call, references), messages))
