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

# Which rows may name such a place, and where in them it stands.
_ROWS = {
    "nodes": """body LIKE '%"type":"image"%'""",
    "conversations": "body LIKE '%/workspaces/%'",
    "tasks": "body LIKE '%/workspaces/%' OR body LIKE '%/attachments/%'",
}


# Of the tasks that can be resumed: no answer that has not been acted on counts any more.
_AT_REST = (
    """UPDATE tasks SET body = json_set(body, '$.resumes', json('false'), '$.retryAt', NULL,
    '$.approve', CASE json_extract(body, '$.approve') WHEN 'all' THEN 'ask' ELSE json_extract(body, '$.approve') END)
    WHERE ended_at IS NULL""",
    """UPDATE asks SET status = 'cancelled', body = json_set(body, '$.status', 'cancelled')
    WHERE status = 'answered' AND task_id IN (SELECT id FROM tasks WHERE ended_at IS NULL)""",
)


def settle(database: Path, paths: Paths) -> None:
    """Nobody else has it open. What is named in this folder already, and folders that are there, stay. Raises
    sqlite3.Error.
    """
    settled = {"nodes": _with_pictures, "conversations": _with_workspace, "tasks": _as_task}
    with closing(sqlite3.connect(database)) as connection, connection:
        for statement in _AT_REST:
            connection.execute(statement)
        for table, rows in _ROWS.items():
            numbers = connection.execute(f"SELECT rowid FROM {table} WHERE {rows}").fetchall()
            for (number,) in numbers:
                _settle_row(connection, table, number, lambda body, of=table: settled[of](body, paths))


def _settle_row(
    connection: sqlite3.Connection, table: str, number: int, settled: Callable[[JsonObject], JsonObject]
) -> None:
    (text,) = connection.execute(f"SELECT body FROM {table} WHERE rowid = ?", (number,)).fetchone()
    body = msgspec.json.decode(text, type=JsonObject)
    if (moved := settled(body)) != body:
        new = msgspec.json.encode(moved).decode()
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
    moved, queue = _moved_to_own(task, task.get("conversationId"), paths), task.get("queue")
    return {**moved, "queue": [_queued(entry, paths) for entry in queue]} if isinstance(queue, list) else moved


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
