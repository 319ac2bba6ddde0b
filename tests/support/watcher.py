"""A listener that keeps what a connection tells it, and can wait for it."""

import asyncio
from collections.abc import Callable

from app.client.connection import Connection
from app.client.messages import Message
from app.protocol.events import EventRecord

_TIMEOUT_S = 10.0


class Watcher:
    def __init__(self, connection: Connection) -> None:
        self.messages: list[Message] = []
        self._changed = asyncio.Event()
        self.unsubscribe = connection.subscribe(self._take)

    @property
    def sequences(self) -> list[int]:
        return [message.sequence for message in self.messages if isinstance(message, EventRecord)]

    async def until(self, condition: Callable[[list[Message]], bool]) -> None:
        async with asyncio.timeout(_TIMEOUT_S):
            while not condition(self.messages):
                self._changed.clear()
                await self._changed.wait()

    async def until_sequence(self, sequence: int) -> None:
        await self.until(lambda _: sequence in self.sequences)

    async def until_kind(self, kind: type[Message]) -> None:
        await self.until(lambda messages: any(isinstance(message, kind) for message in messages))

    def _take(self, message: Message) -> None:
        self.messages.append(message)
        self._changed.set()
