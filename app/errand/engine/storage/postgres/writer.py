"""Writes the journal's batches to PostgreSQL, on one connection that keeps other engines away."""

import secrets
from collections.abc import Sequence
from itertools import groupby

from sqlalchemy import bindparam, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from errand.engine.core.errors import CannotSave
from errand.engine.storage.sql.async_engine import AsyncConnection, AsyncEngine
from errand.engine.storage.sql.errors import save_error, save_error_of, trouble_of
from errand.engine.storage.sql.statements import Value, Write, upsert
from errand.engine.storage.sql.tables import meta

# The lock is held by the session as long as it lives. Such locks are per database; the number is ours alone. The server
# looks every minute whether we are still there: a machine that is switched off or loses its network says no goodbye.
_LOCK = text(
    """
    SELECT pg_try_advisory_lock(7310577101310) AS is_ours, pid, backend_start :: text AS began,
        set_config('tcp_keepalives_idle', '60', false), set_config('tcp_keepalives_interval', '10', false),
        set_config('tcp_keepalives_count', '3', false)
    FROM pg_stat_activity WHERE pid = pg_backend_pid()
    """
)
# Waits up to two seconds for its end.
_END = text(
    "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE pid = :pid AND backend_start :: text = :began"
)
_MARK = upsert(meta, ["name"], ["value"])
# Waits for a transaction that wrote the mark and still lives on the server.
_MARKED = select(meta.c.value).where(meta.c.name == bindparam("name")).with_for_update()
_NAME = "batch"


class PostgresWriter:
    """A writer that writes no batch twice. After a lost connection nobody knows whether the last batch was committed:
    each batch also writes a mark, which is read before the batch is tried again.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._connection: AsyncConnection | None = None
        self._doubtful: tuple[Sequence[Write], str] | None = None
        self._session: dict[str, Value] | None = None

    async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
        """The server decides how durable a commit is. Consecutive equal statements are sent together."""
        was_connected = self._connection is not None
        try:
            try:
                await self._write(batch)
            except DBAPIError as error:
                if not (was_connected and error.connection_invalidated):
                    raise
                await self._disconnect()  # lost since its last use, maybe by what is between here and the server
                await self._write(batch)
        except (SQLAlchemyError, OSError) as error:
            if trouble_of(error) is not None:
                await self._disconnect()
            raise save_error_of(error) from error
        except (ValueError, TypeError, OverflowError) as error:
            raise save_error(error) from error
        self._doubtful = None

    async def _write(self, batch: Sequence[Write]) -> None:
        connection = await self.connected()
        async with connection.begin():
            if await self._is_committed(connection, batch):
                return
            mark = secrets.token_hex(8)
            await connection.execute(_MARK, {"name": _NAME, "value": mark})
            for statement, writes in groupby(batch, key=lambda write: write.statement):
                rows: list[dict[str, Value]] = [dict(write.parameters) for write in writes]
                await connection.execute(statement, rows)
            self._doubtful = (batch, mark)

    async def begin(self, connection: AsyncConnection, *, durable: bool) -> None:
        """SQLAlchemy has begun the transaction; see `write`."""

    async def close(self) -> None:
        """Let go of the database; the engine's owner closes its other connections."""
        await self._disconnect()

    async def connected(self) -> AsyncConnection:
        """Raises `CannotSave` if another engine uses this database."""
        if self._connection is None:
            connection = await self._engine.connect()
            try:
                await self._lock(connection)
            except CannotSave:
                await connection.close()
                raise
            except (SQLAlchemyError, OSError):
                await connection.invalidate()
                await connection.close()
                raise
            self._connection = connection
        return self._connection

    async def _lock(self, connection: AsyncConnection) -> None:
        """Ends our earlier session if the server does not know yet that its connection is lost."""
        session = (await connection.execute(_LOCK)).one()
        if not session.is_ours and self._session is not None:
            await connection.execute(_END, self._session)
            session = (await connection.execute(_LOCK)).one()
        await connection.commit()
        if not session.is_ours:
            raise CannotSave("Not saved: another Errand uses this database.", "locked")
        self._session = {"pid": session.pid, "began": session.began}

    async def _is_committed(self, connection: AsyncConnection, batch: Sequence[Write]) -> bool:
        if self._doubtful is None or self._doubtful[0] is not batch:
            return False
        mark = await connection.scalar(_MARKED, {"name": _NAME})
        return mark == self._doubtful[1]

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.invalidate()
            await connection.close()
