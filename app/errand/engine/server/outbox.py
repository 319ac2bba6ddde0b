"""The bounded send queue of one client: the engine never waits for a client."""

import asyncio
from collections import deque
from dataclasses import dataclass
from enum import Enum

_MAX_MESSAGES = 2_000
_MAX_QUEUED_BYTES = 8 * 1024 * 1024
# Deltas go only to clients that keep up: they are dropped first.
_DELTA_SHARE = 0.25


class MessageKind(Enum):
    REPLY = "reply"
    EVENT = "event"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class _Item:
    kind: MessageKind
    data: bytes


class Outbox:
    """A FIFO queue. Replies are never dropped: `room` blocks the reader of requests instead."""

    def __init__(self, most_messages: int = _MAX_MESSAGES, most_bytes: int = _MAX_QUEUED_BYTES) -> None:
        self._most_messages = most_messages
        self._most_bytes = most_bytes
        self._items: deque[_Item] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._is_closed = False

    @property
    def free_messages(self) -> int:
        return self._most_messages - len(self._items)

    def put(self, kind: MessageKind, data: bytes) -> bool:
        """Queue a message; False if it does not fit. A reply always does, a delta while the client keeps up.

        After an event that does not fit the caller drops the other events too and notifies the client.
        """
        if self._is_closed:
            return True
        count, size = len(self._items), self._bytes
        match kind:
            case MessageKind.EVENT if count >= self._most_messages or size + len(data) > self._most_bytes:
                return False
            case MessageKind.DELTA if max(count / self._most_messages, size / self._most_bytes) >= _DELTA_SHARE:
                return False
            case _:
                pass
        self._items.append(_Item(kind, data))
        self._bytes += len(data)
        self._empty.clear()
        self._filled.set()
        if kind is MessageKind.REPLY and (len(self._items) >= self._most_messages or self._bytes >= self._most_bytes):
            self._room.clear()
        return True

    def close(self) -> None:
        """The client is gone: drop everything, now and later. Nobody waits for room any more."""
        self._is_closed = True
        self._items.clear()
        self._bytes = 0
        self._room.set()
        self._empty.set()

    def drop_events(self) -> None:
        self._items = deque(item for item in self._items if item.kind is MessageKind.REPLY)
        self._bytes = sum(len(item.data) for item in self._items)

    async def take(self) -> bytes:
        """Return the next message; waits for one."""
        while not self._items:
            self._filled.clear()
            self._empty.set()
            await self._filled.wait()
        item = self._items.popleft()
        self._bytes -= len(item.data)
        if len(self._items) < self._most_messages and self._bytes < self._most_bytes:
            self._room.set()
        return item.data

    async def room(self) -> None:
        """Wait until a reply fits, or the client is gone."""
        await self._room.wait()

    async def emptied(self) -> None:
        """Wait until everything is handed to the socket and the sender has come back for more."""
        await self._empty.wait()
