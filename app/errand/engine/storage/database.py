"""The database: opening it, its single writer, and one store for each kind of record."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from uuid import uuid4

from sqlalchemy import make_url, select, text
from sqlalchemy.exc import ArgumentError

from errand.engine.core.errors import ConfigurationError, StorageError
from errand.engine.storage.records import agents
from errand.engine.storage.records.agents import AgentStore, PersonalityStore
from errand.engine.storage.records.asks import AskStore
from errand.engine.storage.records.changes import ChangeStore
from errand.engine.storage.records.commands import CommandStore
from errand.engine.storage.records.conversation_tree import TreeStore
from errand.engine.storage.records.conversations import ConversationStore
from errand.engine.storage.records.events import EventStore
from errand.engine.storage.records.executions import ExecutionStore
from errand.engine.storage.records.facts import FactStore
from errand.engine.storage.records.forgetting import ForgetStore
from errand.engine.storage.records.grants import GrantStore
from errand.engine.storage.records.memory_log import MemoryLogStore
from errand.engine.storage.records.nodes import NodeStore
from errand.engine.storage.records.removal import RemovalStore
from errand.engine.storage.records.storage_stats import StorageStatsStore
from errand.engine.storage.records.tasks import PromptStore, TaskStore
from errand.engine.storage.records.transfer import TransferStore
from errand.engine.storage.records.turns import TurnStore
from errand.engine.storage.records.usage import UsageStore
from errand.engine.storage.search.fts5 import Fts5Index, Fts5Titles
from errand.engine.storage.search.full_text import FullTextSearch
from errand.engine.storage.search.text_vectors import TextVectorIndex, TextVectorTitles
from errand.engine.storage.search.titles import TitleSearch
from errand.engine.storage.sql.async_engine import AsyncEngine
from errand.engine.storage.sql.errors import name_of
from errand.engine.storage.sql.journal import Journal
from errand.engine.storage.sql.reader import Reader, Reads
from errand.engine.storage.sql.statements import Write, upsert
from errand.engine.storage.sql.tables import meta
from errand.engine.storage.sql.writer import Writer
from errand.engine.storage.sqlite.engines import open_engine, path_of
from errand.engine.storage.sqlite.remains import clear_remains, clear_rows, mark_secure
from errand.text.redaction import redact

_ADD_META = upsert(meta, ["name"])
_SIZE_ON_SERVER = text("SELECT pg_database_size(current_database()) AS size")


@dataclass(frozen=True, slots=True)
class ServerDatabase:
    """A database on a server: its name with that of the host, and its size there."""

    name: str
    bytes: int


class Database:
    """Stores read; `journal` writes. `epoch` identifies the event log in this database.

    Stores `redact` keys in titles and in beginnings of texts. The texts themselves are read as they were written.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        journal: Journal,
        reads: Reads,
        epoch: str,
        redact: Callable[[str], str] = redact,
    ) -> None:
        self._engine = engine
        self._reads = reads
        self._reader = reader = Reader(reads, journal, name_of(engine), redact)
        self.redact = redact
        self.journal = journal
        self.health = journal.health
        self.epoch = epoch
        self.conversations = ConversationStore(reader)
        self.nodes = NodeStore(reader)
        self.trees = TreeStore(reader)
        self.personalities = PersonalityStore(reader)
        self.agents = AgentStore(reader)
        self.tasks = TaskStore(reader)
        self.turns = TurnStore(reader)
        self.usage = UsageStore(reader)
        self.executions = ExecutionStore(reader)
        self.prompts = PromptStore(reader)
        self.asks = AskStore(reader)
        self.grants = GrantStore(reader)
        self.changes = ChangeStore(reader)
        self.facts = FactStore(reader)
        self.memory_log = MemoryLogStore(reader)
        self.events = EventStore(reader)
        self.commands = CommandStore(reader)
        self.removals = RemovalStore(reader)
        self.forgets = ForgetStore(reader)
        self.storage_stats = StorageStatsStore(reader)
        self.transfer = TransferStore(reader)
        self._is_file = engine.dialect.name == "sqlite"
        self.titles: TitleSearch = Fts5Titles(reader) if self._is_file else TextVectorTitles(reader)
        self.search = FullTextSearch(
            reader, self.titles, Fts5Index(reader, journal) if self._is_file else TextVectorIndex()
        )

    @classmethod
    async def open(cls, url: str, copies: Path, redact: Callable[[str], str] = redact) -> Self:
        """Open the database at an SQLAlchemy URL of SQLite or PostgreSQL; creates or migrates it as needed.

        Before a migration a copy of a SQLite file goes into `copies`. Raises `ConfigurationError` for an unusable URL,
        `StorageError` if the database cannot be opened; it is unchanged then.
        """
        engine, writer, reads = await _open(url, copies)
        journal = Journal(writer, engine)
        try:
            epoch = await _ensure_epoch(journal, Reader(reads, journal, name_of(engine)))
        except StorageError as error:
            await reads.close()
            await journal.close()
            raise StorageError(
                f"The database cannot be used. {error} Nothing was changed. If it is damaged: "
                "errand doctor --repair, or put a copy from the copies folder in its place: errand restore FILE"
            ) from error
        return cls(engine, journal, reads, epoch, redact)

    async def on_server(self) -> ServerDatabase | None:
        """Return None if the database is a file."""
        if self._is_file:
            return None
        (row,) = await self._reader.rows(_SIZE_ON_SERVER)
        return ServerDatabase(name_of(self._engine), row.size)

    async def clear_remains(self) -> str:
        """Clear what is left of removed texts in the file; see `remains.clear_remains`."""
        return await clear_remains(self.journal, self._engine)

    async def clear_rows(self) -> str:
        """Clear what is left of removed texts that are not in the search; see `remains.clear_rows`."""
        return await clear_rows(self.journal, self._engine)

    async def close(self) -> None:
        """Commit queued changes and close all connections."""
        try:
            await self._reads.close()
        finally:
            await self.journal.close()


async def _open(url: str, copies: Path) -> tuple[AsyncEngine, Writer, Reads]:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(f"The setting database_url is no database URL: {error}") from error
    match parsed.drivername:
        case "sqlite" | "sqlite+aiosqlite":
            return await open_engine(path_of(parsed), copies)
        case "postgresql" | "postgresql+asyncpg":
            from errand.engine.storage.postgres.server import open_server

            return await open_server(parsed)
        case other:
            raise ConfigurationError(
                f"The setting database_url begins with {other!r}. Errand works with SQLite and PostgreSQL: write "
                "postgresql://user@host/database, or leave it empty."
            )


async def _ensure_epoch(journal: Journal, reader: Reader) -> str:
    """Ensure the epoch and the default personality; returns the epoch. Does not wait if the epoch exists."""
    if (epoch := await _epoch(reader)) is not None:
        return epoch
    journal.put(
        Write(_ADD_META, {"name": "epoch", "value": uuid4().hex}),
        mark_secure(),
        agents.add_personality(agents.ASSISTANT),
    )
    await journal.flush()
    epoch = await _epoch(reader)
    assert epoch is not None
    return epoch


async def _epoch(reader: Reader) -> str | None:
    rows = await reader.rows(select(meta.c.value).where(meta.c.name == "epoch"))
    return str(rows[0].value) if rows else None
