"""Statements of tests on any database, and the mark of tests that are about SQLite's files."""

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Row, make_url, text

from errand.engine.storage.database import Database
from errand.engine.storage.postgres.server import open_server
from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sql.statements import Value
from errand.engine.storage.sqlite.opening import prepare_file

of_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def new_file(path: Path) -> Path:
    """A database with all tables and without a row, as an engine makes it: copied, in a fifth of the time."""
    path.write_bytes(_empty_file())
    path.chmod(0o600)
    return path


@cache
def _empty_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "errand.db"
        prepare_file(path, Path(folder) / "copies")
        return path.read_bytes()


async def make_tables(url: str) -> None:
    """Create the tables of an empty database on a server."""
    engine, writer, _ = await open_server(make_url(url))
    await writer.close()
    await engine.dispose()


async def execute(database: Database, sql: str, parameters: Mapping[str, Value] | None = None) -> Sequence[Row[Any]]:
    """Run a statement as the journal runs its own; the rows it returns, if any. Raises `StorageError`."""

    async def work(connection: AsyncConnection) -> Sequence[Row[Any]]:
        result = await connection.execute(text(sql), parameters or {})
        return result.all() if result.returns_rows else ()

    return await database.journal.transact(work)
