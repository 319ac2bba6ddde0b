"""Writes the journal's batches to a SQLite file, each in one transaction."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.sql.dml import UpdateBase

from errand.engine.core.worker_thread import WorkerThread
from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sql.errors import save_error
from errand.engine.storage.sql.statements import Value, Write

_dialect = SQLiteDialect_pysqlite(paramstyle="named")

# For a read that was cancelled when the database was closed, and ends in its thread.
_MAX_CHECKPOINT_WAIT_MS = 1000


class SqliteWriter:
    """One thread with one connection: one thread hop per batch, where an async driver needs one per call."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._is_durable: bool | None = None
        self._thread = WorkerThread("storage writer")

    async def write(self, batch: Sequence[Write], *, durable: bool) -> None:
        statements = [_prepared(write) for write in batch]
        await self._thread.run(partial(self._commit, statements, durable=durable))

    def _commit(self, statements: Sequence[tuple[str, Mapping[str, Value]]], *, durable: bool) -> None:
        execute = self._connection.execute
        try:
            if self._connection.in_transaction:
                execute("ROLLBACK")  # of a transaction whose rollback failed
            if durable is not self._is_durable:
                execute(_synchronous(durable=durable))
                self._is_durable = durable
            execute("BEGIN IMMEDIATE")
            for sql, parameters in statements:
                execute(sql, parameters)  # pyright: ignore[reportArgumentType] -- the stubs want a dict of Any
            execute("COMMIT")
        except (sqlite3.Error, ValueError, TypeError, OverflowError, MemoryError) as error:
            # Also parameters that cannot be bound: lone surrogates, unsupported types, huge integers.
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    execute("ROLLBACK")
            raise save_error(error) from error

    async def begin(self, connection: AsyncConnection, *, durable: bool) -> None:
        await connection.exec_driver_sql(_synchronous(durable=durable))
        await connection.exec_driver_sql("BEGIN IMMEDIATE")

    async def close(self) -> None:
        """Put the log into the file, so that a copy of the file alone is whole, and close the connection.

        SQLite does this itself when the last connection is closed, but not when two are closed at the same time.
        """
        await self._thread.run(self._close)
        self._thread.close()

    def _close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.execute(f"PRAGMA busy_timeout = {_MAX_CHECKPOINT_WAIT_MS}")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()


def _synchronous(*, durable: bool) -> str:
    """FULL flushes the WAL on each commit, NORMAL only before a checkpoint."""
    return "PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL"


def _prepared(write: Write) -> tuple[str, Mapping[str, Value]]:
    sql, own = _compiled(write.statement, tuple(write.parameters))
    return sql, {**own, **write.parameters} if own else write.parameters


@lru_cache(maxsize=512)
def _compiled(statement: UpdateBase, names: tuple[str, ...]) -> tuple[str, Mapping[str, Value]]:
    """Return the SQL of a statement, and the values embedded in the statement."""
    compiled = statement.compile(dialect=_dialect, column_keys=list(names))
    return str(compiled), {name: value for name, value in compiled.params.items() if name not in names}
