"""A new database in a real file for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.engine.storage.database import Database
from app.engine.storage.records import conversations, tasks
from app.engine.storage.sqlite.engines import sqlite_url
from tests.support.records import conversation, task


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """With the conversation c1 and its task t1, to which most other records belong."""
    database = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path / "copies")
    database.journal.put(conversations.save(conversation("c1")), tasks.save(task("t1")))
    await database.journal.flush()
    yield database
    await database.close()
