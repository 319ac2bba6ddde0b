"""What calls the engine for functions that window and terminal share."""

from typing import Protocol

from errand.protocol.base import Method, P, R


class Caller(Protocol):
    """Calls the engine: a connection, or the session of the window."""

    async def call(self, method: Method[P, R], params: P) -> R: ...
