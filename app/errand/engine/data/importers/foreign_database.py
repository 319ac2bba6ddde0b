"""Opens the SQLite database of another program, which may be running and is not trusted.

It is read in one transaction, which blocks nobody and sees one state. It may be any file, so that only tables are read,
sizes are checked before values, and steps are limited.
"""

import sqlite3
from collections.abc import Collection, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from errand.engine.core.errors import InvalidParams
from errand.engine.core.input_limits import MAX_RECORD_BYTES

SIGN = b"SQLite format 3\0"
MAX_SESSIONS = 100_000
MAX_SESSION_BYTES = 128 * 1024 * 1024
# Steps of SQLite's machine for the whole database; a minute or two. A million parts take 20 million.
_STEPS = 100_000
_MAX_STEPS = 20_000 * _STEPS


@contextmanager
def reading(path: Path) -> Generator[sqlite3.Connection]:
    """Open a database to read. Raises `InvalidParams` if that fails."""
    try:
        with closing(_open(path)) as connection:
            connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        raise InvalidParams(f"its database cannot be read ({error})") from error


def tables(path: Path) -> Collection[str]:
    """Return the names of its plain tables: a view or a virtual table could compute for ever."""
    with reading(path) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' LIMIT 1000").fetchall()
        return {row["name"] for row in rows if "VIRTUAL" not in str(row["sql"]).upper().split("(")[0]}


def as_bytes(data: object) -> bytes:
    """Return a column may hold any type."""
    return data.encode("utf-8", "replace") if isinstance(data, str) else data if isinstance(data, bytes) else b""


def _open(path: Path) -> sqlite3.Connection:
    wal = path.with_name(f"{path.name}-wal")
    # Without a write-ahead log nobody writes, and no file is made beside the database.
    mode = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
    # The importer reads in several threads, one after the other.
    connection = sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=5, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.isolation_level = None
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_RECORD_BYTES * 2)
    _limit_steps(connection)
    for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _limit_steps(connection: sqlite3.Connection) -> None:
    """Limit the time of statements. One that exceeds it raises `sqlite3.OperationalError`."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += _STEPS
        return int(steps > _MAX_STEPS)

    connection.set_progress_handler(step, _STEPS)
