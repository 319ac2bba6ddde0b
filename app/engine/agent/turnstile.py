"""One at a time for each key: who comes second waits, and finds what the first one left."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Turnstile:
    """Keys nobody waits for take no memory."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._wanted: dict[str, int] = {}

    @asynccontextmanager
    async def one(self, key: str) -> AsyncGenerator[None]:
        self._wanted[key] = self._wanted.get(key, 0) + 1
        try:
            async with self._locks.setdefault(key, asyncio.Lock()):
                yield
        finally:
            self._wanted[key] -= 1
            if not self._wanted[key]:
                del self._wanted[key], self._locks[key]
