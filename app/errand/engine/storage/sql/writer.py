"""What the journal wants from the writer of a database."""

from collections.abc import Sequence
from typing import Protocol

from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sql.statements import Write


class Writer(Protocol):
    async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
        """Execute the batch in order in one transaction. Raises `StorageError` if none of it was done.

        A durable batch survives a power failure, with all earlier ones. A non-durable batch survives a crash of the
        engine, and may cost less.
        """
        ...

    async def begin(self, connection: AsyncConnection, *, durable: bool) -> None:
        """Begin a transaction of somebody else's connection, as durable as a batch and as exclusive."""
        ...

    async def close(self) -> None: ...
