"""Reads of a database on a server, on pooled connections."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row
from sqlalchemy.sql.expression import Executable

from errand.engine.storage.sql.async_engine import AsyncEngine
from errand.engine.storage.sql.statements import Value

# When the database is closed, for reads that nobody waits for any more.
_LAST_S = 1.0


class PooledReads:
    """Each read is a transaction of its own, so that it takes one round trip.

    A read whose caller is cancelled goes on to its end: half read, it would hold the state of the database until its
    objects are collected.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._running: set[asyncio.Task[Sequence[Row[Any]]]] = set()

    async def rows(self, statement: Executable, parameters: Mapping[str, Value] | None) -> Sequence[Row[Any]]:
        """Raises errors of SQLAlchemy, and `OSError` of the socket."""
        reading = asyncio.get_running_loop().create_task(self._rows(statement, parameters), name="storage read")
        self._running.add(reading)
        reading.add_done_callback(self._on_read)
        return await asyncio.shield(reading)

    async def close(self) -> None:
        """Wait for reads that are under way, not longer than a moment."""
        if self._running:
            await asyncio.wait(self._running, timeout=_LAST_S)

    async def _rows(self, statement: Executable, parameters: Mapping[str, Value] | None) -> Sequence[Row[Any]]:
        async with self._engine.connect() as connection:
            return (await connection.execute(statement, parameters)).all()

    def _on_read(self, reading: asyncio.Task[Sequence[Row[Any]]]) -> None:
        self._running.discard(reading)
        if not reading.cancelled():
            reading.exception()  # its caller may be gone
