"""Copies the readable rows of a damaged database into a new one, and fills gaps from a backup copy."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from errand.system.database_file import open_to_read

# Maximum number of rows read one by one between the readable ends of a table.
_MAX_PROBED_ROWS = 1_000_000
_PARTS_OF_INDEXES = ("_data", "_idx", "_content", "_docsize", "_config")


@dataclass(frozen=True, slots=True)
class SalvagedTable:
    """The result for one table: rows from the broken file, and rows that only the copy had."""

    table: str
    read: int
    from_copy: int


@dataclass(frozen=True, slots=True)
class _SchemaObject:
    kind: str
    name: str
    sql: str


def salvage(broken: Path, copy: Path | None, new: Path) -> tuple[SalvagedTable, ...]:
    """Create `new` with the tables of `broken` (or of the copy) and all readable rows; changes neither.

    Raises sqlite3.Error if not even the names of the tables can be read.
    """
    new.unlink(missing_ok=True)
    things = _schema_objects(broken, copy)
    with closing(sqlite3.connect(new, isolation_level=None)) as target, closing(open_to_read(broken)) as source:
        target.execute("PRAGMA foreign_keys = OFF")
        target.execute("BEGIN")
        if copy is not None:
            target.execute("COMMIT")
            target.execute("ATTACH DATABASE ? AS copy", (f"{copy.absolute()}",))
            target.execute("BEGIN")
        pieces = tuple(_table(source, target, thing, has_copy=copy is not None) for thing in things if _is_table(thing))
        _finish(target, things)
        target.execute("COMMIT")
    new.chmod(0o600)
    return pieces


def _schema_objects(broken: Path, copy: Path | None) -> tuple[_SchemaObject, ...]:
    """Return the declarations of tables, indexes, views and triggers."""
    query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    for file in (broken, copy):
        if file is not None:
            with suppress(sqlite3.DatabaseError), closing(open_to_read(file)) as connection:
                declarations = tuple(_SchemaObject(*row) for row in connection.execute(query))
                if any(thing.name == "alembic_version" for thing in declarations):
                    return declarations
    raise sqlite3.DatabaseError("its list of tables is lost, and there is no copy")


def _is_table(entry: _SchemaObject) -> bool:
    return entry.kind == "table" and not _is_index_of_search(entry)


def _is_index_of_search(entry: _SchemaObject) -> bool:
    return entry.sql.startswith("CREATE VIRTUAL") or any(
        entry.name == f"{name}_search{part}" for name in ("node", "title") for part in _PARTS_OF_INDEXES
    )


def _table(
    source: sqlite3.Connection, target: sqlite3.Connection, entry: _SchemaObject, *, has_copy: bool
) -> SalvagedTable:
    target.execute(entry.sql)
    columns = [str(row[1]) for row in target.execute(f"PRAGMA table_info({entry.name})")]
    names = ", ".join(columns)
    parameters = ", ".join("?" * len(columns))
    read = 0
    for row in _rows(source, entry.name, names):
        read += target.execute(f"INSERT OR IGNORE INTO {entry.name} ({names}) VALUES ({parameters})", row).rowcount
    added = 0
    if has_copy:
        with suppress(sqlite3.DatabaseError):  # an older copy may not have the table
            take = f"INSERT OR IGNORE INTO {entry.name} ({names}) SELECT {names} FROM copy.{entry.name}"
            added = target.execute(take).rowcount
    return SalvagedTable(entry.name, read, added)


def _rows(source: sqlite3.Connection, table: str, names: str) -> Iterator[tuple[str | int | float | None, ...]]:
    """Read forward as far as possible, backward as far as possible, then one by one between."""
    first, last = None, None
    try:
        source.execute(f"SELECT 1 FROM {table} LIMIT 0")
    except sqlite3.DatabaseError:
        return  # the schema of this file is unreadable
    rising = f"SELECT rowid, {names} FROM {table} NOT INDEXED ORDER BY rowid"
    try:
        for number, *row in source.execute(rising):
            first = int(number)
            yield tuple(row)
        return
    except sqlite3.DatabaseError:
        pass
    with suppress(sqlite3.DatabaseError):
        for number, *row in source.execute(f"{rising} DESC"):
            last = int(number)
            yield tuple(row)
    start, end = (first or 0) + 1, last if last is not None else (first or 0) + _MAX_PROBED_ROWS
    for number in range(start, min(end, start + _MAX_PROBED_ROWS)):
        with suppress(sqlite3.DatabaseError):
            row = source.execute(f"SELECT {names} FROM {table} WHERE rowid = ?", (number,)).fetchone()
            if row is not None:
                yield tuple(row)


def _finish(target: sqlite3.Connection, things: tuple[_SchemaObject, ...]) -> None:
    """Repair references to lost rows, then create indexes, and triggers last, since they guard the repaired rows."""
    _repair_references(target)
    for kind in ("index", "view"):
        for thing in things:
            if thing.kind == kind:
                target.execute(thing.sql)
    for thing in things:
        if thing.sql.startswith("CREATE VIRTUAL"):
            target.execute(thing.sql)
    fill_search(target)
    for thing in things:
        if thing.kind == "trigger":
            target.execute(thing.sql)


def fill_search(target: sqlite3.Connection) -> None:
    """Fill the empty search indexes, and the days of nodes."""
    # Like the triggers: a streaming node is indexed once it is finished. The indexed columns depend on the schema.
    names = ", ".join(str(row[1]) for row in target.execute("PRAGMA table_info(node_search)"))
    target.execute(
        f"INSERT INTO node_search (rowid, {names}) SELECT number, {names} FROM node_texts "
        "WHERE number IN (SELECT number FROM nodes WHERE status <> 'streaming')"
    )
    if target.execute("SELECT 1 FROM sqlite_master WHERE name = 'node_unindexed'").fetchone():
        target.execute("DELETE FROM node_unindexed")
    target.execute(
        "INSERT INTO title_search (id, word, title) SELECT id, replace(replace(id, '-', ''), '_', ''), title "
        "FROM conversations ORDER BY updated_at"
    )
    if target.execute("SELECT 1 FROM sqlite_master WHERE name = 'node_days'").fetchone():
        target.execute(
            "INSERT OR REPLACE INTO node_days SELECT substr(created_at, 1, 10), min(number), max(number) FROM nodes "
            "GROUP BY 1"
        )


def _repair_references(target: sqlite3.Connection) -> None:
    for statement in _REFERENCE_REPAIRS:
        target.execute(statement)
    for table in _TASK_TABLES:
        if target.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            target.execute(f"DELETE FROM {table} WHERE task_id NOT IN (SELECT id FROM tasks)")
    if target.execute("SELECT 1 FROM sqlite_master WHERE name = 'task_requests'").fetchone():
        target.execute(_EMPTY_REQUESTS)


# A lost conversation with remaining parts is recreated without its title; a message whose predecessor is lost becomes a
# root; an agent moves to the newest remaining message; the parts of a lost task are deleted.
_REFERENCE_REPAIRS = (
    """
    INSERT INTO conversations (id, title, updated_at, archived, body)
    SELECT conversation_id, 'Recovered', at, 0, json_object('id', conversation_id, 'title', 'Recovered',
        'createdAt', at, 'updatedAt', at)
    FROM (
        SELECT conversation_id, max(at) AS at FROM (
            SELECT conversation_id, json_extract(body, '$.createdAt') AS at FROM nodes
            UNION ALL SELECT conversation_id, json_extract(body, '$.createdAt') FROM agents
            UNION ALL SELECT conversation_id, json_extract(body, '$.startedAt') FROM tasks
        ) GROUP BY conversation_id
    )
    WHERE conversation_id NOT IN (SELECT id FROM conversations)
    """,
    """
    UPDATE nodes SET parent_id = NULL, body = json_set(body, '$.parentId', NULL)
    WHERE parent_id IS NOT NULL AND parent_id NOT IN (SELECT id FROM nodes)
    """,
    """
    UPDATE agents SET body = json_set(body, '$.headId', (
        SELECT id FROM nodes WHERE nodes.conversation_id = agents.conversation_id ORDER BY number DESC LIMIT 1
    ))
    WHERE json_extract(body, '$.headId') IS NOT NULL AND json_extract(body, '$.headId') NOT IN (SELECT id FROM nodes)
    """,
)
# A task whose request is lost keeps the rest.
_EMPTY_REQUESTS = """
INSERT INTO task_requests (task_id, body) SELECT id, json_object('prompt', '', 'model', '', 'workspace', '')
FROM tasks WHERE id NOT IN (SELECT task_id FROM task_requests)
"""
# A database with an older schema lacks some of them.
_TASK_TABLES = ("task_requests", "prompts", "turns", "tool_executions", "asks")
