"""Opens a database on a PostgreSQL server: connects, creates or migrates the schema."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import URL, Connection, event, inspect, text
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from errand.engine.core.errors import CannotSave, ConfigurationError, StorageError
from errand.engine.storage.postgres.schema import CREATE
from errand.engine.storage.postgres.writer import PostgresWriter
from errand.engine.storage.sqlite import schema
from errand.engine.storage.sqlite.errors import error_text

_CONNECTIONS = 6
_CONNECT_S = 5.0
# Longer than any statement of ours takes: a server or network that hangs counts as away.
_ANSWER_S = 30.0
# The session of a killed engine may live on for a moment.
_LOCKED_S = 5.0
_PAUSE_S = 0.2
_OLDEST = 140_000  # `server_version_num` of PostgreSQL 14
# Earlier ones could not keep a task on a server, and have none of the functions of schema.py.
_FIRST_REVISION = "0015"


async def open_server(url: URL, answer_s: float = _ANSWER_S) -> tuple[AsyncEngine, PostgresWriter]:
    """Raises `ConfigurationError` for an unusable URL, `StorageError` for an unusable server or database."""
    try:
        engine = create_async_engine(
            url.set(drivername="postgresql+asyncpg"),
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_pre_ping=True,  # a server that was restarted is noticed here, not by a failing read
            connect_args={"timeout": _CONNECT_S, "command_timeout": answer_s},
        )
    except ImportError as error:
        raise ConfigurationError(
            "The setting database_url names a PostgreSQL server, and its driver is not installed. "
            'Run: pip install "errand-desktop[postgres]"'
        ) from error
    event.listen(engine.sync_engine, "do_connect", _connect)
    event.listen(engine.sync_engine, "before_cursor_execute", _without_nul, retval=True)
    writer = PostgresWriter(engine)
    try:
        connection = await _lock(writer)
        async with connection.begin():
            await connection.run_sync(_prepare, url)
    except (SQLAlchemyError, OSError, StorageError) as error:
        await writer.close()
        await engine.dispose()
        if isinstance(error, SQLAlchemyError):
            raise StorageError(f"The database {url!r} cannot be opened: {error_text(error)}") from error
        if isinstance(error, OSError):
            raise StorageError(f"The database {url!r} cannot be reached: {error}") from error
        raise
    return engine, writer


async def _lock(writer: PostgresWriter) -> AsyncConnection:
    give_up_at = time.monotonic() + _LOCKED_S
    while True:
        try:
            return await writer.connected()
        except CannotSave:
            if time.monotonic() > give_up_at:
                raise
        await asyncio.sleep(_PAUSE_S)


def _prepare(connection: Connection, url: URL) -> None:
    (version,) = connection.exec_driver_sql("SELECT current_setting('server_version_num')").one()
    (encoding,) = connection.exec_driver_sql("SELECT current_setting('server_encoding')").one()
    if int(version) < _OLDEST or encoding != "UTF8":
        raise StorageError(f"The database {url!r} cannot be used: it must be PostgreSQL 14 or newer, encoded in UTF8.")
    if not inspect(connection).has_table("alembic_version"):
        schema.create(connection, CREATE)
        return
    revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if revision not in schema.REVISIONS:
        raise StorageError(
            f"The database {url!r} was written by a newer Errand (schema {revision}; this one knows up to "
            f"{schema.HEAD}). Nothing was changed. Install the newer version again, or name another database in the "
            "setting database_url."
        )
    if revision < _FIRST_REVISION:
        raise StorageError(
            f"The database {url!r} was made by an older Errand, which could not keep tasks on a server. Nothing was "
            "changed. Name an empty database in the setting database_url."
        )
    if revision != schema.HEAD:
        schema.migrate(connection)


def _connect(
    dialect: Dialect, _: ConnectionPoolEntry, arguments: Sequence[Any], options: Mapping[str, Any]
) -> DBAPIConnection:
    try:
        return dialect.connect(*arguments, **options)
    except TimeoutError as error:
        raise TimeoutError(f"no answer within {_CONNECT_S:g} s") from error


def _without_nul(
    _connection: Connection, _cursor: object, statement: str, parameters: Any, _context: object, is_many: bool
) -> tuple[str, Any]:
    """PostgreSQL's texts cannot hold NUL, which SQLite's can."""
    return statement, [_clean(row) for row in parameters] if is_many else _clean(parameters)


def _clean(row: Sequence[object]) -> Sequence[object]:
    if not any(isinstance(value, str) and "\0" in value for value in row):
        return row
    return tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row)
