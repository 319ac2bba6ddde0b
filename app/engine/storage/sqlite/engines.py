"""SQLAlchemy engines behind a URL; SQLite's connection settings."""

import asyncio
import sqlite3
from pathlib import Path

from sqlalchemy import URL, Connection, event, inspect, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, InvalidRequestError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from app.engine.core.errors import ConfigurationError, StorageError
from app.engine.storage.sqlite import schema
from app.engine.storage.sqlite.errors import error_text
from app.engine.storage.sqlite.opening import prepare_file
from app.engine.storage.sqlite.writer import EngineWriter, SqliteWriter, Writer

SHARED_SETTINGS = (
    "PRAGMA busy_timeout = 5000",
    "PRAGMA foreign_keys = ON",
    # A commit is on disk when it returns and survives a power failure.
    "PRAGMA synchronous = FULL",
    # What is deleted is overwritten with zeros, so that a forgotten text is not left in the file.
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA recursive_triggers = ON",  # INSERT OR REPLACE must not bypass the append-only triggers
)

_READERS = 4


def path_of(url: URL) -> Path | None:
    """The file of a SQLite URL, None for other databases. Raises `ConfigurationError` for an in-memory database."""
    if url.get_backend_name() != "sqlite":
        return None
    if not url.database or url.database == ":memory:":
        raise ConfigurationError(
            "The setting database_url names no file. Write sqlite+aiosqlite:////path/to/errand.db."
        )
    return Path(url.database)


def connect(path: Path) -> sqlite3.Connection:
    """A connection for writing, in WAL mode; transactions are started explicitly."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        for setting in (*SHARED_SETTINGS, "PRAGMA journal_mode = WAL", "PRAGMA journal_size_limit = 67108864"):
            connection.execute(setting)
    except sqlite3.Error as error:
        connection.close()
        raise StorageError(
            f"{path} cannot be written ({error}). Nothing was changed. Check its rights and the room on the disk."
        ) from error
    return connection


def sqlite_url(path: Path) -> str:
    return URL.create("sqlite+aiosqlite", database=str(path)).render_as_string()


async def open_engine(url: str, copies: Path) -> tuple[AsyncEngine, Writer]:
    """Raises `ConfigurationError` for an unusable URL, `StorageError` for an unusable database."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(f"The setting database_url is no database URL: {error}") from error
    path = path_of(parsed)
    if path is not None:
        await asyncio.to_thread(prepare_file, path, copies)
        writer = SqliteWriter(await asyncio.to_thread(connect, path))
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
        for setting in SHARED_SETTINGS:
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
        raise StorageError(f"The database {url!r} cannot be opened: {error_text(error)}") from error
    except OSError as error:
        raise StorageError(f"The database {url!r} cannot be reached: {error}") from error
