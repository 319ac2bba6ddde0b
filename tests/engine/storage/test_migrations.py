"""Migrations: from each revision with its data, after a copy, to the current schema."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from errand.engine.agent.prompt.personalities import BUILTIN_PERSONALITIES
from errand.engine.core.errors import StorageError
from errand.engine.storage.database import Database
from errand.engine.storage.records import agents, changes, conversations, events, grants, nodes, tasks
from errand.engine.storage.records.flat_tasks import grouped_task
from errand.engine.storage.sql import schema
from errand.engine.storage.sql.statements import Value, to_json, to_text
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.engine.storage.sqlite.opening import prepare_file
from errand.protocol.base import JsonObject
from errand.protocol.changes import Change
from errand.protocol.events import EventRecord, TaskMessage, TaskUpdate
from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage, UsageReportParams
from tests.support.databases import execute
from tests.support.flat_tasks import FLAT_TASK, TASK, back_to_flat_tasks
from tests.support.records import NOW, conversation, grant, node, task

_, CODER, _, WRITER = BUILTIN_PERSONALITIES
POET = msgspec.structs.replace(WRITER, name="Poet")
USED = Usage(input_tokens=70, output_tokens=7, cache_read_tokens=5, cache_write_tokens=2, cost_usd=0.25, seconds=1.5)


def migrate_to(path: Path, revision: str) -> None:
    """A database as that revision's version would have made it."""
    engine = create_engine(f"sqlite:///{path}")
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


def insert(path: Path, table: str, parameters: dict[str, Value]) -> None:
    """Omits columns that the revision does not have yet."""
    with closing(sqlite3.connect(path)) as connection:
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        names = ", ".join(name for name in parameters if name in columns)
        placeholders = ", ".join(f":{name}" for name in parameters if name in columns)
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({placeholders})", parameters)
        connection.commit()


def schema_of(path: Path) -> dict[str, str]:
    """The statements by name, with the settings of the search index."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        searches = {name for name, _ in rows} & {"node_search_config"}
        settings = [row for name in searches for row in connection.execute(f"SELECT k, v FROM {name}")]
    return {name: re.sub(r"\s+", "", str(value)) for name, value in (*rows, *settings)}


def old_database(path: Path) -> None:
    """A database of the first revision, with data for every migration."""
    migrate_to(path, schema.REVISIONS[0])
    pinned = msgspec.structs.replace(conversation("c1"), pinned=True)
    insert(path, "conversations", dict(conversations.save(pinned).parameters))
    entry = node("n1", text="An old treasure")
    insert(path, "nodes", dict(nodes.save(entry).parameters))
    insert(path, "tasks", {**tasks.save(task("t1")).parameters, "body": to_json(task("t1"))})
    begun = {"task_id": "t1", "turn": 1, "status": "complete", "model": "m/x", "started_at": to_text(NOW)}
    insert(path, "turns", {**begun, "usage": to_json(USED)})
    insert(path, "turns", {**begun, "turn": 2, "status": "started", "usage": None})
    insert(path, "grants", dict(grants.save(grant("g1")).parameters))
    for personality in (CODER, POET):
        uncoloured = msgspec.structs.replace(personality, color="")
        insert(path, "personalities", dict(agents.save_personality(uncoloured).parameters))


async def test_older_database_keeps_its_records_and_gets_the_new_schema(tmp_path: Path) -> None:
    old_database(tmp_path / "errand.db")
    database = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path / "copies")
    try:
        pinned = msgspec.structs.replace(conversation("c1"), pinned=True)
        assert (await database.conversations.page(pinned=True)).conversations == (pinned,)
        assert await database.titles.find("title") == (pinned,)
        assert await database.nodes.path("n1") == (node("n1", text="An old treasure"),)
        assert [hit.node_id for hit in await database.search.find("treasure")] == ["n1"]
        (used,) = (await database.usage.report(UsageReportParams())).conversations
        assert (used.key, used.usage, used.turns, used.tasks) == ("c1", USED, 1, 1)
        assert [await database.personalities.get(personality.id) for personality in (CODER, POET)] == [CODER, POET]
        assert await database.grants.valid() == ()
        (revoked,) = await database.grants.all()
        assert msgspec.structs.replace(revoked, revoked_at=None) == grant("g1"), "it allowed more than it said"
        assert (await database.usage.report(UsageReportParams(since=NOW.date(), until=NOW.date()))).total.turns == 1
    finally:
        await database.close()


async def test_a_copy_is_taken_before_a_migration_and_none_without_one(tmp_path: Path) -> None:
    old_database(tmp_path / "errand.db")
    before = schema_of(tmp_path / "errand.db")
    for _ in range(2):
        database = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path / "copies")
        await database.close()
    (copy,) = (tmp_path / "copies").iterdir()
    assert copy.name.startswith(f"errand-{schema.REVISIONS[0]}-")
    assert schema_of(copy) == before
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT id FROM nodes").fetchall() == [("n1",)]


def test_the_newest_five_copies_are_kept(tmp_path: Path) -> None:
    for number in range(7):
        path = tmp_path / "errand.db"
        path.unlink(missing_ok=True)
        old_database(path)
        insert(path, "meta", {"name": "number", "value": str(number)})
        prepare_file(path, tmp_path / "copies")
    numbers: set[str] = set()
    for copy in (tmp_path / "copies").iterdir():
        with closing(sqlite3.connect(copy)) as connection:
            numbers.add(connection.execute("SELECT value FROM meta WHERE name = 'number'").fetchone()[0])
    assert numbers == {"2", "3", "4", "5", "6"}


def test_without_a_copy_nothing_is_migrated(tmp_path: Path) -> None:
    old_database(tmp_path / "errand.db")
    before = schema_of(tmp_path / "errand.db")
    (tmp_path / "copies").write_text("in the way")
    with pytest.raises(StorageError, match="nothing was changed"):
        prepare_file(tmp_path / "errand.db", tmp_path / "copies")
    assert schema_of(tmp_path / "errand.db") == before


def test_a_migration_that_fails_changes_nothing_and_names_the_copy(tmp_path: Path) -> None:
    migrate_to(tmp_path / "errand.db", "0001")
    with closing(sqlite3.connect(tmp_path / "errand.db")) as connection:
        connection.execute("CREATE TABLE node_search (in_the_way TEXT)")
    before = schema_of(tmp_path / "errand.db")
    with pytest.raises(StorageError, match="Nothing was changed; a copy is at"):
        prepare_file(tmp_path / "errand.db", tmp_path / "copies")
    assert schema_of(tmp_path / "errand.db") == before


def test_a_new_database_has_the_schema_of_a_migrated_one(tmp_path: Path) -> None:
    migrate_to(tmp_path / "migrated.db", "head")
    prepare_file(tmp_path / "new.db", tmp_path / "copies")
    new = schema_of(tmp_path / "new.db")
    assert new == schema_of(tmp_path / "migrated.db")
    assert new["pgsz"] == "1000", "small pages: no commit waits long for a merge of the index"


def test_the_known_revisions_are_those_of_the_migrations() -> None:
    scripts = ScriptDirectory(str(schema.MIGRATIONS))
    assert tuple(script.revision for script in reversed(list(scripts.walk_revisions()))) == schema.REVISIONS


async def test_changes_of_files_are_recorded_in_an_upgraded_database(tmp_path: Path) -> None:
    old_database(tmp_path / "errand.db")
    change = Change(
        id="change_1",
        task_id="t1",
        conversation_id="c1",
        step=1,
        kind="edit",
        path="/work/a",
        at=NOW,
        before="one",
        after="two",
    )
    database = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path / "copies")
    try:
        database.journal.put(changes.save(change))
        await database.journal.flush()
        assert await database.changes.of_files("t1") == (change,)
        assert await database.changes.contents(NOW) == {"one", "two"}
        assert await database.changes.task_ids("c1") == {"t1"}
    finally:
        await database.close()


async def test_tasks_and_their_events_get_groups(database_url: str, tmp_path: Path) -> None:
    database = await Database.open(database_url, tmp_path / "copies")
    try:
        database.journal.put(conversations.save(conversation("c1")), *tasks.add(TASK), *tasks.add(task("t2")))
        for sequence, event in enumerate((TaskUpdate(task=TASK), TaskMessage(node=node("n1"))), start=1):
            database.journal.put(events.save(EventRecord(sequence=sequence, epoch="e", event=event)))
        await database.journal.flush()
        stored = await database.tasks.get("t2")
        log = await database.events.after(0)
        flat_event: JsonObject = {"sequence": 1, "epoch": "e", "event": {"type": "taskUpdate", "task": FLAT_TASK}}
        for statement, body in (
            ("UPDATE tasks SET body = :body WHERE id = 't1'", FLAT_TASK),
            ("UPDATE events SET body = :body WHERE sequence = 1", flat_event),
        ):
            await execute(database, statement, {"body": to_json(body)})
        await execute(database, "UPDATE tasks SET body = :body WHERE id = 't2'", {"body": to_json(stored)})
        await execute(database, "INSERT INTO commands VALUES ('client', '1', 'task/stop', '{}', '2026')")
        await back_to_flat_tasks(database)
    finally:
        await database.close()
    database = await Database.open(database_url, tmp_path / "copies")
    try:
        assert (await database.tasks.get("t1"), await database.tasks.get("t2")) == (TASK, stored)
        assert await database.events.after(0) == log
        assert await execute(database, "SELECT * FROM commands") == [], "their results have tasks too"
    finally:
        await database.close()


async def test_damaged_tasks_and_events_stay_as_they_are_and_hinder_no_migration(tmp_path: Path) -> None:
    migrate_to(tmp_path / "errand.db", "0015")
    started = {"conversation_id": "c1", "status": "completed", "started_at": to_text(NOW)}
    for task_id, body in (("t0", "damaged {"), ("t1", to_json(FLAT_TASK))):
        insert(tmp_path / "errand.db", "tasks", {"id": task_id, "body": body, **started})
    bodies = ('damaged "type":"taskUpdate" {', '{"event":null,"more":{"type":"taskUpdate"}}')
    for sequence, body in enumerate(bodies, start=1):
        insert(tmp_path / "errand.db", "events", {"sequence": sequence, "body": body})
    database = await Database.open(sqlite_url(tmp_path / "errand.db"), tmp_path / "copies")
    try:
        assert await database.tasks.get("t1") == TASK
        with pytest.raises(StorageError, match="A stored Task cannot be read"):
            await database.tasks.get("t0")
        rows = await execute(database, "SELECT body FROM events ORDER BY sequence")
        assert tuple(row[0] for row in rows) == bodies
    finally:
        await database.close()


def test_each_field_of_an_old_task_finds_its_place() -> None:
    assert msgspec.convert(grouped_task(FLAT_TASK), Task) == TASK
    assert grouped_task(msgspec.to_builtins(TASK)) == msgspec.to_builtins(TASK), "one with groups stays as it is"
