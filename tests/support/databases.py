"""Statements of tests on any database, and the mark of tests that are about SQLite's files."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from errand.engine.storage.database import Database

of_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def execute(database: Database, sql: str) -> Sequence[Row[Any]]:
    """Run a statement as the journal runs its own; the rows it returns, if any. Raises `StorageError`."""

    async def work(connection: AsyncConnection) -> Sequence[Row[Any]]:
        result = await connection.execute(text(sql))
        return result.all() if result.returns_rows else ()

    return await database.journal.transact(work)
