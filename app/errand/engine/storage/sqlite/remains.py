"""Clears what deleted and rewritten rows leave behind in a SQLite file: search index, free pages, write-ahead log.

`PRAGMA secure_delete` overwrites rows and pages when they are freed. That does not reach the older parts of a full-text
index, which keep the words of a removed text until they are merged; pages that a SQLite without that setting freed;
and the log, which holds older versions of pages. Copies of the file are not touched.
"""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import bindparam, select, text

from errand.engine.core.errors import StorageError
from errand.engine.storage.sql.async_engine import AsyncConnection, AsyncEngine
from errand.engine.storage.sql.errors import save_error
from errand.engine.storage.sql.journal import Journal
from errand.engine.storage.sql.slices import in_slices
from errand.engine.storage.sql.statements import Write, upsert
from errand.engine.storage.sql.tables import meta

_INDEXES = ("node_search", "title_search")
# Pages of an index that one step merges, in a few milliseconds.
_PAGES = 64
# Fewer changes than this say that nothing is left to merge (https://sqlite.org/fts5.html#the_merge_command).
_WORK = 2
# Whoever reads the database keeps the log from being emptied: clients for milliseconds, the daily copy longer.
_TRIES = 40
_PAUSE_S = 0.25

_IS_SECURE = select(meta.c.value).where(meta.c.name == bindparam("name"))
_SET = upsert(meta, ["name"], ["value"])
_SECURE = "secure_delete"


def mark_secure() -> Write:
    """Put this into a new database: nothing was ever deleted in it without being overwritten."""
    return Write(_SET, {"name": _SECURE, "value": "1"})


async def clear_remains(journal: Journal, engine: AsyncEngine) -> str:
    """Clear what is left of removed texts. Returns what could not be cleared now, in words; usually empty.

    Takes a moment for each 10 MB of index; a file that was written by an older Errand is rewritten once, while
    everything else waits to be saved. Raises `StorageError`. Does nothing for other databases than SQLite.
    """
    if engine.dialect.name == "sqlite":
        for index in _INDEXES:
            await _merge(journal, index)
    return await clear_rows(journal, engine)


async def clear_rows(journal: Journal, engine: AsyncEngine) -> str:
    """Clear what is left of removed texts that no full-text index has. The same as `clear_remains` otherwise."""
    if engine.dialect.name != "sqlite" or engine.url.database is None:
        return ""
    file = Path(engine.url.database)
    async with engine.connect() as connection:
        is_secure = (await connection.execute(_IS_SECURE, {"name": _SECURE})).first() is not None
    if not is_secure:
        await journal.while_idle(lambda: asyncio.to_thread(_rewrite, file))
        journal.put(mark_secure())
    await journal.flush()
    return await _empty_log(journal, file)


async def _merge(journal: Journal, index: str) -> None:
    """Merge all parts of a full-text index into one: entries and their deletions then cancel each other."""
    pages = [-_PAGES]  # negative once: parts of all sizes take part

    async def step(connection: AsyncConnection) -> bool:
        before = await connection.scalar(_TOTAL)
        await connection.exec_driver_sql(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', {pages[0]})")
        pages[0] = _PAGES
        return (await connection.scalar(_TOTAL) or 0) - (before or 0) >= _WORK

    await in_slices(journal, step)


_TOTAL = text("SELECT total_changes()")


def _rewrite(file: Path) -> None:
    try:
        with closing(sqlite3.connect(file, isolation_level=None, timeout=5)) as connection:
            connection.execute("VACUUM")
    except sqlite3.Error as error:
        raise save_error(error) from error


async def _empty_log(journal: Journal, file: Path) -> str:
    for _ in range(_TRIES):
        if await journal.while_idle(lambda: asyncio.to_thread(_checkpoint, file)):
            return ""
        await asyncio.sleep(_PAUSE_S)
    return (
        "Another reader of the database, such as a backup, kept its log from being emptied: older versions of the "
        "text stay in it until the engine ends."
    )


def _checkpoint(file: Path) -> bool:
    try:
        with closing(sqlite3.connect(file, isolation_level=None, timeout=0.2)) as connection:
            (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not is_busy
    except sqlite3.OperationalError:
        return False
    except sqlite3.Error as error:
        raise StorageError(f"The log of the database could not be emptied: {error}") from error
