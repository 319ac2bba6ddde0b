"""A database from a file: the pictures and own workspaces that it names are those of this folder.

Nothing in it goes on by itself: what was under way there waits for a person, who is asked again what was allowed.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from app.paths import Paths
from app.protocol.json import JsonObject, JsonValue

# Which rows may name such a place, and where in them it stands; of tasks all.
_ROWS = {"nodes": """body LIKE '%"type":"image"%'""", "conversations": "body LIKE '%/workspaces/%'", "tasks": "true"}

_AT_REST: JsonObject = {"resumes": False, "retryAt": None}
# What triggers of ours write to, and the one view.
_INDEXES = frozenset(("node_search", "title_search"))
_VIEW = "node_texts"
# By the column, by which the engine finds them, or by what the task says itself.
_ASKS_OF_OPEN_TASKS = """SELECT asks.rowid FROM asks JOIN tasks ON tasks.id = asks.task_id
WHERE tasks.ended_at IS NULL OR json_extract(tasks.body, '$.status') NOT IN ('completed', 'cancelled', 'error')"""
_WRITES = frozenset((sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE))


def settle(database: Path, paths: Paths) -> None:
    """Nobody else has it open. What is named in this folder already, and folders that are there, stay. Raises
    sqlite3.Error, also for a database that changes its records by itself.
    """
    settled = {"nodes": _with_pictures, "conversations": _with_workspace, "tasks": _as_task}
    with closing(sqlite3.connect(database)) as connection, connection:
        _check_acts_not(connection)
        for table, rows in _ROWS.items():
            numbers = connection.execute(f"SELECT rowid FROM {table} WHERE {rows}").fetchall()
            for (number,) in numbers:
                _settle_row(connection, table, number, lambda body, of=table: settled[of](body, paths))
        for (number,) in connection.execute(_ASKS_OF_OPEN_TASKS).fetchall():
            _settle_row(connection, "asks", number, _unanswered)
            connection.execute("UPDATE asks SET status = json_extract(body, '$.status') WHERE rowid = ?", (number,))


def _check_acts_not(connection: sqlite3.Connection) -> None:
    """What a database brings along runs with all that is written to it later: our triggers keep indexes, no others do.

    SQLite itself tells what a change of a table would set off.
    """
    foreign: list[str] = []

    def look(action: int, table: str | None, _: str | None, __: str | None, trigger: str | None) -> int:
        if trigger is not None and action in _WRITES and table not in _INDEXES:
            foreign.append(trigger)
        return sqlite3.SQLITE_OK

    found = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    for kind, name, sql in found:
        is_plain = kind == "table" and not sql.upper().startswith("CREATE VIRTUAL")
        if not (is_plain or name in _INDEXES or (kind, name) == ("view", _VIEW)):
            foreign.append(name)
    connection.set_authorizer(look)
    for table in [_quoted(name) for kind, name, _ in found if kind == "table"]:
        columns = [_quoted(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
        connection.execute(f"EXPLAIN INSERT INTO {table} DEFAULT VALUES")
        connection.execute(f"EXPLAIN UPDATE {table} SET {', '.join(f'{column} = NULL' for column in columns)}")
        connection.execute(f"EXPLAIN DELETE FROM {table}")
    connection.set_authorizer(None)
    if foreign:
        raise sqlite3.DatabaseError(f"it is made to change its records by itself ({foreign[0]!r})")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _settle_row(
    connection: sqlite3.Connection, table: str, number: int, settled: Callable[[JsonObject], JsonObject]
) -> None:
    (text,) = connection.execute(f"SELECT body FROM {table} WHERE rowid = ?", (number,)).fetchone()
    new = msgspec.json.encode(settled(msgspec.json.decode(text, type=JsonObject))).decode()
    if new != text:  # also where a name stands in it twice: SQLite reads the first, the engine the last
        connection.execute(f"UPDATE {table} SET body = ? WHERE rowid = ?", (new, number))


def _with_pictures(node: JsonObject, paths: Paths) -> JsonObject:
    blocks = node.get("blocks")
    return {**node, "blocks": [_picture(block, paths) for block in blocks]} if isinstance(blocks, list) else node


def _picture(block: JsonValue, paths: Paths) -> JsonValue:
    """Of a result of a tool its pictures."""
    if not isinstance(block, dict):
        return block
    images = block.get("images")
    if isinstance(images, list):
        return {**block, "images": [_picture(image, paths) for image in images]}
    return {**block, "path": _copy(block["path"], paths)} if block.get("type") == "image" and "path" in block else block


def _copy(path: JsonValue, paths: Paths) -> JsonValue:
    """Copies of pictures are in a folder by their content: it has the same name in each data folder."""
    if not isinstance(path, str) or Path(path).parent.parent.name != paths.attachments.name:
        return path
    return str(paths.attachments / Path(path).parent.name / Path(path).name)


def _with_workspace(conversation: JsonObject, paths: Paths) -> JsonObject:
    return _moved_to_own(conversation, conversation.get("id"), paths)


def _as_task(task: JsonObject, paths: Paths) -> JsonObject:
    """Waiting for a person, who is asked; a task that repeats it takes over no more."""
    task = task | {name: rest for name, rest in _AT_REST.items() if task.get(name)}
    if task.get("approve") == "all":
        task = {**task, "approve": "ask"}
    moved, queue = _moved_to_own(task, task.get("conversationId"), paths), task.get("queue")
    return {**moved, "queue": [_queued(entry, paths) for entry in queue]} if isinstance(queue, list) else moved


def _unanswered(ask: JsonObject) -> JsonObject:
    return {**ask, "status": "cancelled"} if ask.get("status") == "answered" else ask


def _queued(entry: JsonValue, paths: Paths) -> JsonValue:
    attached = entry.get("attachments") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(attached, list):
        return entry
    return {**entry, "attachments": [_copy(path, paths) for path in attached]}


def _moved_to_own(body: JsonObject, conversation_id: JsonValue, paths: Paths) -> JsonObject:
    """The folder that was made for a conversation without one: where it did not come along there is an empty one."""
    workspace = body.get("workspace")
    if not isinstance(workspace, str) or not isinstance(conversation_id, str) or Path(workspace).is_dir():
        return body
    if Path(workspace).parts[-2:] != (paths.workspaces.name, conversation_id):
        return body
    own = paths.workspaces / conversation_id
    own.mkdir(mode=0o700, exist_ok=True)
    return {**body, "workspace": str(own)}
