"""Databases other than SQLite: the same statements, the generic writer and the generic search."""

from pathlib import Path

import pytest
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from app.engine.core.errors import StorageError
from app.engine.core.resources import Health
from app.engine.storage.database import Database
from app.engine.storage.event_writes import event_writes
from app.engine.storage.records import agents, commands, conversations, events, executions, memory_log, nodes, turns
from app.engine.storage.search.like import LikeSearch
from app.engine.storage.search.titles import LikeTitleSearch
from app.engine.storage.sqlite.engines import open_engine, sqlite_url
from app.engine.storage.sqlite.journal import Journal
from app.engine.storage.sqlite.reader import Reader
from app.engine.storage.sqlite.statements import Write
from app.engine.storage.sqlite.tables import metadata
from app.engine.storage.sqlite.writer import EngineWriter
from app.protocol.events import EventRecord
from app.protocol.usage import Usage
from tests.engine.storage.test_audit import finished, started
from tests.engine.storage.test_events import ALL
from tests.support.records import NOW, agent, conversation, node


def all_writes() -> list[Write]:
    """One write of each kind."""
    records = [EventRecord(sequence=number, epoch="", event=event) for number, event in enumerate(ALL)]
    of_events = [write for record in records for write in event_writes(record)]
    return [
        *of_events,
        turns.started("c1", "t1", 1, "m", NOW),
        turns.finished("t1", 1, "complete", Usage(), NOW),
        executions.started(started("x1")),
        executions.finished(finished("x1")),
        agents.save_personality(agents.ASSISTANT),
        commands.save("client", "1", "task/start", "{}", NOW),
        commands.prune(NOW),
        memory_log.add("pruned", "Errand", "12 vectors"),
        events.prune(10),
    ]


def test_every_table_and_write_compiles_for_postgresql() -> None:
    dialect = postgresql.dialect()
    for table in metadata.sorted_tables:
        CreateTable(table).compile(dialect=dialect)
        for index in table.indexes:
            CreateIndex(index).compile(dialect=dialect)
    for write in all_writes():
        assert str(write.statement.compile(dialect=dialect, column_keys=list(write.parameters)))


def test_postgresql_upsert_returns_the_generated_number() -> None:
    write = nodes.save(node("n1"))
    sql = str(write.statement.compile(dialect=postgresql.dialect(), column_keys=list(write.parameters)))
    changes = "SET status = excluded.status, body = excluded.body"
    assert sql.endswith(f" ON CONFLICT (id) DO UPDATE {changes} RETURNING nodes.number")


async def test_engine_writer_commits_and_isolates_failures_like_the_sqlite_writer(
    database: Database, tmp_path: Path
) -> None:
    engine, fast = await open_engine(sqlite_url(tmp_path / "errand.db"), tmp_path)
    journal = Journal(EngineWriter(engine), engine)
    for write in all_writes():
        journal.put(write)
    await journal.flush()
    journal.put(nodes.save(node("orphan", conversation_id="none")))
    with pytest.raises(StorageError, match="Not saved: FOREIGN KEY constraint failed"):
        await journal.flush()
    journal.put(conversations.save(conversation("c2")))
    await journal.close()
    await fast.close()
    await engine.dispose()
    assert await database.nodes.get("n1") == node("n1")
    assert await database.conversations.get("c2") == conversation("c2")


async def test_like_search_finds_words_and_accepts_any_input(database: Database, tmp_path: Path) -> None:
    database.journal.put(nodes.save(node("n1", text="100 % of the Fox")), nodes.save(node("n2", text="a fox")))
    database.journal.put(agents.save_agent(agent()))
    await database.journal.flush()
    engine, writer = await open_engine(sqlite_url(tmp_path / "errand.db"), tmp_path)
    reader = Reader(engine, Health())
    search = LikeSearch(reader, LikeTitleSearch(reader))
    try:
        assert [hit.node_id for hit in await search.find("fox")] == ["n2", "n1"]
        assert [hit.node_id for hit in await search.find('"the fox"', 20, "c1")] == ["n1"]
        assert await search.find("fox", 20, "c2") == ()
        assert [hit.node_id for hit in await search.find("from:Assistant fox in:title")] == ["n2", "n1"]
        assert [hit.place for hit in await search.find("from:agent before:2026-02 after:2026-01-02")] == [2, 1]
        assert await search.find("from:user fox") == await search.find("tool:shell") == ()
        assert await search.find("from:nobody") == await search.find("after:2027") == ()
        assert await search.find("%") == ()
        assert await search.find("fox_") == ()
        assert "\u2068fox\u2069" in (await search.find("fox", limit=1))[0].snippet
    finally:
        await writer.close()
        await engine.dispose()
