"""A new database for each test: in a real file, and on a real PostgreSQL server."""

from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest

from errand.engine.storage.database import Database
from errand.engine.storage.records import conversations, tasks
from errand.engine.storage.sqlite.engines import sqlite_url
from tests.support.databases import new_file
from tests.support.postgres_server import PostgresServer
from tests.support.records import conversation, task

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    if request.param == "sqlite":
        yield sqlite_url(new_file(tmp_path / "errand.db"))
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.new_database(request.getfixturevalue("empty_tables"))
    yield url
    server.drop(url)


@pytest.fixture
async def database(database_url: str, tmp_path: Path) -> AsyncIterator[Database]:
    """A database with the conversation c1 and its task t1, to which most other records belong."""
    database = await Database.open(database_url, tmp_path / "copies")
    database.journal.put(conversations.save(conversation("c1")), *tasks.add(task("t1")))
    await database.journal.flush()
    yield database
    await database.close()
