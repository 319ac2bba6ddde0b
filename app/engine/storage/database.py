"""The database: opened, its single writer, and one store for each kind of record."""

import asyncio
from pathlib import Path
from typing import Self
from uuid import uuid4

from sqlalchemy import URL, Connection, event, inspect, make_url, select, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from app.engine.errors import StorageError
from app.engine.storage import personalities, schema, sqlite
from app.engine.storage.agents import AgentStore
from app.engine.storage.asks import AskStore
from app.engine.storage.commands import CommandStore
from app.engine.storage.conversations import ConversationStore
from app.engine.storage.events import EventStore
from app.engine.storage.executions import ExecutionStore
from app.engine.storage.grants import GrantStore
from app.engine.storage.journal import Journal
from app.engine.storage.nodes import NodeStore
from app.engine.storage.opening import prepare_file
from app.engine.storage.personalities import PersonalityStore
from app.engine.storage.reader import Reader
from app.engine.storage.search import FtsSearch, LikeSearch, NodeSearch
from app.engine.storage.tables import meta
from app.engine.storage.tasks import TaskStore
from app.engine.storage.turns import TurnStore
from app.engine.storage.upsert import Upsert
from app.engine.storage.write import Write
from app.engine.storage.writer import EngineWriter, SqliteWriter

_READERS = 4
_ADD_META = Upsert(meta, ["name"], [])


class Database:
    """Reads go through the stores, changes through `journal`. `epoch` names the event log this database holds."""

    def __init__(self, engine: AsyncEngine, journal: Journal, epoch: str) -> None:
        self._engine = engine
        reader = Reader(engine)
        self.journal = journal
        self.epoch = epoch
        self.conversations = ConversationStore(reader)
        self.nodes = NodeStore(reader)
        self.personalities = PersonalityStore(reader)
        self.agents = AgentStore(reader)
        self.tasks = TaskStore(reader)
        self.turns = TurnStore(reader)
        self.executions = ExecutionStore(reader)
        self.asks = AskStore(reader)
        self.grants = GrantStore(reader)
        self.events = EventStore(reader)
        self.commands = CommandStore(reader)
        self.search: NodeSearch = FtsSearch(reader) if engine.dialect.name == "sqlite" else LikeSearch(reader)

    @classmethod
    async def open(cls, url: str, copies: Path) -> Self:
        """Open the database at an SQLAlchemy URL with an async driver; a new one is made, an older one migrated.

        Before a migration a copy goes into `copies`. StorageError where it cannot be opened; it is unchanged then.
        """
        parsed = make_url(url)
        path = sqlite.path_of(parsed)
        if path is not None:
            await asyncio.to_thread(prepare_file, path, copies)
            engine = _sqlite_engine(parsed)
            journal = Journal(SqliteWriter(path), engine)
        else:
            engine = create_async_engine(parsed)
            await _prepare_server(engine, parsed)
            journal = Journal(EngineWriter(engine), engine)
        return cls(engine, journal, await _first_rows(journal, Reader(engine)))

    async def close(self) -> None:
        """Commit what is queued and close all connections."""
        await self.journal.close()
        await self._engine.dispose()


def sqlite_url(path: Path) -> str:
    return URL.create("sqlite+aiosqlite", database=str(path)).render_as_string()


def _sqlite_engine(url: URL) -> AsyncEngine:
    engine = create_async_engine(
        url,
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
    except (SQLAlchemyError, OSError) as error:
        raise StorageError(f"The database {url!r} cannot be opened: {error}") from error


async def _first_rows(journal: Journal, reader: Reader) -> str:
    """See that the epoch and the default personality are there; the epoch."""
    journal.put(
        Write(_ADD_META, {"name": "epoch", "value": uuid4().hex}),
        personalities.add(personalities.ASSISTANT),
    )
    await journal.flush()
    (row,) = await reader.rows(select(meta.c.value).where(meta.c.name == "epoch"))
    return str(row.value)
