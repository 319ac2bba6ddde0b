"""The SQLAlchemy engine behind a URL, with the writer that goes with it; the schema is current by then."""

import asyncio
from pathlib import Path

from sqlalchemy import URL, Connection, event, inspect, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, InvalidRequestError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from app.engine.errors import ConfigurationError, StorageError
from app.engine.storage import schema, sqlite
from app.engine.storage.failure import reason
from app.engine.storage.opening import prepare_file
from app.engine.storage.writer import EngineWriter, SqliteWriter, Writer

_READERS = 4


def sqlite_url(path: Path) -> str:
    return URL.create("sqlite+aiosqlite", database=str(path)).render_as_string()


async def open_engine(url: str, copies: Path) -> tuple[AsyncEngine, Writer]:
    """ConfigurationError for a URL that cannot be used, StorageError for a database that cannot."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(f"The setting database_url is no database URL: {error}") from error
    path = sqlite.path_of(parsed)
    if path is not None:
        await asyncio.to_thread(prepare_file, path, copies)
        writer = SqliteWriter(await asyncio.to_thread(sqlite.connect, path))
        return _sqlite_engine(path), writer
    engine = await _server_engine(parsed)
    return engine, EngineWriter(engine)


def _sqlite_engine(path: Path) -> AsyncEngine:
    engine = create_async_engine(
        sqlite_url(path),
        pool_size=_READERS,
        max_overflow=0,
        pool_reset_on_return=None,  # reads have no transaction to roll back
        connect_args={"isolation_level": None},
    )

    def configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        for setting in sqlite.SHARED_SETTINGS:
            cursor.execute(setting)
        cursor.close()

    event.listen(engine.sync_engine, "connect", configure)
    return engine


async def _server_engine(url: URL) -> AsyncEngine:
    try:
        engine = create_async_engine(url)
    except (ImportError, ArgumentError, InvalidRequestError) as error:
        raise ConfigurationError(
            f"The database {url!r} of the setting database_url cannot be used: {error}. "
            "It needs the URL of an async driver, and that driver installed."
        ) from error
    await _prepare_server(engine, url)
    return engine


async def _prepare_server(engine: AsyncEngine, url: URL) -> None:
    def prepare(connection: Connection) -> None:
        if not inspect(connection).has_table("alembic_version"):
            schema.create(connection)
            return
        revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
        if revision not in schema.REVISIONS:
            raise StorageError(f"The database {url!r} was written by a newer Errand (schema {revision}).")
        if revision != schema.HEAD:
            schema.migrate(connection)

    try:
        async with engine.begin() as connection:
            await connection.run_sync(prepare)
    except SQLAlchemyError as error:
        raise StorageError(f"The database {url!r} cannot be opened: {reason(error)}") from error
    except OSError as error:
        raise StorageError(f"The database {url!r} cannot be reached: {error}") from error
