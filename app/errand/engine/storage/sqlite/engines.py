"""Opens a SQLite file for reading and writing: its connections and their settings."""

import asyncio
import sqlite3
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from errand.engine.core.errors import ConfigurationError, StorageError
from errand.engine.storage.sql.async_engine import AsyncEngine, create_async_engine
from errand.engine.storage.sql.writer import Writer
from errand.engine.storage.sqlite.opening import prepare_file
from errand.engine.storage.sqlite.read_threads import ReadThreads
from errand.engine.storage.sqlite.writer import SqliteWriter

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

_LOG_SETTINGS = (
    "PRAGMA journal_size_limit = 67108864",
    # Pages, 16 MB. What is written again and again (the ends of tables and indexes) enters the file once for all.
    "PRAGMA wal_autocheckpoint = 4000",
)


def path_of(url: URL) -> Path:
    """Return the file of a SQLite URL. Raises `ConfigurationError` for an in-memory database."""
    if not url.database or url.database == ":memory:":
        raise ConfigurationError(
            "The setting database_url names no file. Write sqlite+aiosqlite:////path/to/errand.db."
        )
    return Path(url.database)


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection for writing, in WAL mode; transactions are started explicitly."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        for setting in (*SHARED_SETTINGS, "PRAGMA journal_mode = WAL", *_LOG_SETTINGS):
            connection.execute(setting)
    except sqlite3.Error as error:
        connection.close()
        raise StorageError(
            f"{path} cannot be written ({error}). Nothing was changed. Check its rights and the room on the disk."
        ) from error
    return connection


def sqlite_url(path: Path) -> str:
    return URL.create("sqlite+aiosqlite", database=str(path)).render_as_string()


async def open_engine(path: Path, copies: Path) -> tuple[AsyncEngine, Writer, ReadThreads]:
    """Raises `StorageError` for an unusable file."""
    await asyncio.to_thread(prepare_file, path, copies)
    writer = SqliteWriter(await asyncio.to_thread(connect, path))
    return _transaction_engine(path), writer, ReadThreads(_reading_engine(path))


def _transaction_engine(path: Path) -> AsyncEngine:
    """Return an engine for the exclusive transactions of the journal; there is one at a time."""
    engine = create_async_engine(sqlite_url(path), pool_size=1, max_overflow=0, connect_args={"isolation_level": None})
    event.listen(engine.sync_engine, "connect", _configure)
    return engine


def _reading_engine(path: Path) -> Engine:
    """Make the engine for reading: each thread keeps its connection, and reads have no transaction to roll back."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        pool_reset_on_return=None,
        connect_args={"isolation_level": None, "check_same_thread": False},
    )
    event.listen(engine, "connect", _configure)
    return engine


def _configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    for setting in SHARED_SETTINGS:
        cursor.execute(setting)
    cursor.close()
