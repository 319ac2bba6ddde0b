"""Opens a database on a PostgreSQL server: connects, creates or migrates the schema."""

import asyncio
import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

from sqlalchemy import URL, Connection, event, inspect, text
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.exc import InvalidatePoolError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from errand.engine.core.errors import CannotSave, ConfigurationError, StorageError
from errand.engine.storage.postgres.pooled_reads import PooledReads
from errand.engine.storage.postgres.schema import CREATE
from errand.engine.storage.postgres.writer import PostgresWriter
from errand.engine.storage.sql import schema
from errand.engine.storage.sql.async_engine import AsyncConnection, AsyncEngine, create_async_engine
from errand.engine.storage.sql.errors import error_text
from errand.text.url_secrets import without_url_secrets

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

# Parts of an address beside those of every URL. SQLAlchemy takes these itself, all others are those of libpq.
_OF_SQLALCHEMY = ("host", "port")
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile")


async def open_server(url: URL, answer_s: float = _ANSWER_S) -> tuple[AsyncEngine, PostgresWriter, PooledReads]:
    """Raises `ConfigurationError` for an unusable URL, `StorageError` for an unusable server or database."""
    address, arguments = _driver_arguments(url)
    try:
        engine = create_async_engine(
            address,
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_use_lifo=True,  # each connection prepares, and keeps, the statements that it has executed
            connect_args={**arguments, "timeout": _CONNECT_S, "command_timeout": answer_s},
        )
    except ImportError as error:
        raise ConfigurationError(
            "The setting database_url names a PostgreSQL server, and its driver is not installed. "
            'Run: pip install "errand-desktop[postgres]"'
        ) from error
    event.listen(engine.sync_engine, "do_connect", _connect)
    event.listen(engine.sync_engine, "connect", _plan_each_time)
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    event.listen(engine.sync_engine, "before_cursor_execute", _without_nul, retval=True)
    writer = PostgresWriter(engine)
    safe_url = unquote(without_url_secrets(url.render_as_string(hide_password=False)))
    try:
        connection = await _lock(writer)
        async with connection.begin():
            await connection.run_sync(_prepare, safe_url)
    except (SQLAlchemyError, OSError, StorageError) as error:
        await writer.close()
        await engine.dispose()
        if isinstance(error, SQLAlchemyError):
            raise StorageError(f"The database {safe_url} cannot be opened: {error_text(error)}") from error
        if isinstance(error, OSError):
            raise StorageError(
                f"The database {safe_url} cannot be reached: {_reason(error)}. Start its server, or check the network "
                "and the setting database_url."
            ) from error
        raise
    return engine, writer, PooledReads(engine)


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no server has its socket there"
    return error.strerror or str(error)


def _driver_arguments(url: URL) -> tuple[URL, dict[str, object]]:
    """Return the address with what SQLAlchemy takes from it, and arguments of the driver for the rest: `sslmode` and
    others.

    Raises `ConfigurationError` for files that are not there.
    """
    options = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    address = url.difference_update_query([name for name in options if name not in _OF_SQLALCHEMY])
    options = {name: value for name, value in options.items() if name not in _OF_SQLALCHEMY}
    arguments: dict[str, object] = {}
    if options.get("sslrootcert") == "system":
        del options["sslrootcert"]
        arguments["ssl"] = ssl.create_default_context()
    for name in _FILES:
        if name in options and not Path(options[name]).is_file():
            raise ConfigurationError(f"The setting database_url names no file with {name}={options[name]}.")
    # The driver reads what it does not take as an argument from an address alone.
    arguments["dsn"] = f"postgresql:?{urlencode({'application_name': 'Errand', **options})}"
    return address.set(drivername="postgresql+asyncpg"), arguments


async def _lock(writer: PostgresWriter) -> AsyncConnection:
    give_up_at = time.monotonic() + _LOCKED_S
    while True:
        try:
            return await writer.connected()
        except CannotSave:
            if time.monotonic() > give_up_at:
                raise
        await asyncio.sleep(_PAUSE_S)


def _prepare(connection: Connection, shown: str) -> None:
    (version,) = connection.exec_driver_sql("SELECT current_setting('server_version_num')").one()
    (encoding,) = connection.exec_driver_sql("SELECT current_setting('server_encoding')").one()
    if int(version) < _OLDEST or encoding != "UTF8":
        raise StorageError(f"The database {shown} cannot be used: it must be PostgreSQL 14 or newer, encoded in UTF8.")
    if not inspect(connection).has_table("alembic_version"):
        schema.create(connection, CREATE)
        return
    revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if revision not in schema.REVISIONS:
        raise StorageError(
            f"The database {shown} was written by a newer Errand (schema {revision}; this one knows up to "
            f"{schema.HEAD}). Nothing was changed. Install the newer version again, or name another database in the "
            "setting database_url."
        )
    if revision < _FIRST_REVISION:
        raise StorageError(
            f"The database {shown} was made by an older Errand, which could not keep tasks on a server. Nothing was "
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


def _plan_each_time(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """Rare and common words need different plans: a plan for all of them reads every text, or sorts every hit."""
    cursor = connection.cursor()
    cursor.execute("SET plan_cache_mode = force_custom_plan")
    cursor.close()
    connection.commit()


def _refuse_closed(_: DBAPIConnection, entry: ConnectionPoolEntry, _proxy: PoolProxiedConnection) -> None:
    """Replace connections that the server has closed, as when it was restarted, without asking it."""
    if entry.driver_connection is not None and entry.driver_connection.is_closed():
        raise InvalidatePoolError


def _without_nul(
    _connection: Connection, _cursor: object, statement: str, parameters: Any, _context: object, is_many: bool
) -> tuple[str, Any]:
    """PostgreSQL's texts cannot hold NUL, which SQLite's can."""
    return statement, [_clean(row) for row in parameters] if is_many else _clean(parameters)


def _clean(row: Sequence[object]) -> Sequence[object]:
    if not any(isinstance(value, str) and "\0" in value for value in row):
        return row
    return tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row)
