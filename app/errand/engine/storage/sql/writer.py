"""What the journal wants from the writer of a database, and how durable SQLite's commits are."""

from collections.abc import Sequence
from typing import Protocol

from errand.engine.storage.sql.statements import Write


class Writer(Protocol):
    async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
        """Execute the batch in order in one transaction. Raises `StorageError` if none of it was done.

        A durable batch survives a power failure, with all earlier ones. A non-durable batch survives a crash of the
        engine, and may cost less.
        """
        ...

    async def close(self) -> None: ...


def synchronous(*, durable: bool) -> str:
    """The SQLite statement: FULL flushes the WAL on each commit, NORMAL only before a checkpoint."""
    return "PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL"
