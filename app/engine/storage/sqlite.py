"""What is SQLite's own: the settings of each connection and the path in a URL."""

import sqlite3
from pathlib import Path

from sqlalchemy import URL

from app.engine.errors import ConfigurationError, StorageError

SHARED_SETTINGS = (
    "PRAGMA busy_timeout = 5000",
    "PRAGMA foreign_keys = ON",
    # A commit is on the disk when it returns: a power cut does not take it back.
    "PRAGMA synchronous = FULL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA recursive_triggers = ON",  # INSERT OR REPLACE must not get around the append-only triggers
)


def path_of(url: URL) -> Path | None:
    """The file of a SQLite URL, None for other databases; ConfigurationError if it is in memory."""
    if url.get_backend_name() != "sqlite":
        return None
    if not url.database or url.database == ":memory:":
        raise ConfigurationError(
            "The setting database_url names no file. Write sqlite+aiosqlite:////path/to/errand.db."
        )
    return Path(url.database)


def connect(path: Path) -> sqlite3.Connection:
    """A connection for writing, in WAL mode; transactions are begun by hand."""
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
