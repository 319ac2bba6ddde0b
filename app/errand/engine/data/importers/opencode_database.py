"""OpenCode's database: `~/.local/share/opencode/opencode.db`, tables `session`, `message` and `part`.

Looked at: OpenCode 1.18.33. `data` of a message and a part is the record that opencode.py reads, without its ids.
"""

import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.data.importers.conversation import ForeignConversation, ForeignLink, moment
from errand.engine.data.importers.foreign_database import MAX_SESSION_BYTES, MAX_SESSIONS, as_bytes, reading
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.opencode import Info, Part, Session

TABLES = ("session", "message", "part")
_MAX_PARTS = 500_000
_IDS = "SELECT substr(id, 1, 200) AS id FROM session ORDER BY time_created, id LIMIT ?"
_SESSION = """
    SELECT id, substr(parent_id, 1, 200) AS parent_id, substr(title, 1, 1000) AS title,
    substr(directory, 1, 4096) AS directory, time_created, time_updated FROM session WHERE id = ?
"""
_TIMES = """
    SELECT substr(id, 1, 200) AS id, time_updated FROM session WHERE parent_id IS NULL
    ORDER BY time_updated DESC LIMIT ?
"""
_FIND = "SELECT id, substr(title, 1, 1000) AS title, time_created FROM session WHERE id = ?"
_SIZE = """
    SELECT (SELECT coalesce(sum(length(data)), 0) FROM message WHERE session_id = :id)
    + (SELECT coalesce(sum(length(data)), 0) FROM part WHERE session_id = :id) AS size,
    (SELECT count(*) FROM part WHERE session_id = :id) AS parts
"""
_MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS = "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id"


def sessions(path: Path) -> list[tuple[str, int]]:
    """Return the id of each session that no other called, and when it changed, in milliseconds since 1970.

    Raises `InvalidParams` as `read` does.
    """
    with reading(path) as connection:
        try:
            return [(str(row["id"]), int(row["time_updated"])) for row in connection.execute(_TIMES, (MAX_SESSIONS,))]
        except (ValueError, TypeError) as error:
            raise InvalidParams(f"its database cannot be read ({error})") from error


def read(path: Path, context: ImportContext, only: Collection[str] | None = None) -> Iterator[ForeignConversation]:
    """Yield the sessions, or those of the ids `only`. Raises `InvalidParams` for a database that cannot be read."""
    with reading(path) as connection:
        every = [row["id"] for row in connection.execute(_IDS, (MAX_SESSIONS,))]
        for session_id in every if only is None else [session_id for session_id in every if session_id in only]:
            row = connection.execute(_SESSION, (session_id,)).fetchone()
            conversation = _conversation(connection, row, context) if row is not None else None
            if conversation is not None:
                yield conversation


def _conversation(
    connection: sqlite3.Connection, row: sqlite3.Row, context: ImportContext
) -> ForeignConversation | None:
    size = connection.execute(_SIZE, {"id": row["id"]}).fetchone()
    if size["size"] > MAX_SESSION_BYTES or size["parts"] > _MAX_PARTS:
        context.skip("conversations that are too large")
        return None
    facts = {
        "id": row["id"],
        "title": row["title"],
        "directory": row["directory"],
        "time": {"created": row["time_created"], "updated": row["time_updated"]},
        "parentID": row["parent_id"],
    }
    try:
        session = Session(
            msgspec.convert(facts, Info), context, lambda session_id: _find_session(connection, session_id)
        )
    except msgspec.ValidationError:
        context.skip("sessions that cannot be read")
        return None
    parts: dict[str, list[Part]] = {}
    for record in connection.execute(_PARTS, (row["id"],)):
        part = context.record(as_bytes(record["data"]), Part, "parts")
        if part is not None:
            parts.setdefault(record["message_id"], []).append(part)
    for record in connection.execute(_MESSAGES, (row["id"],)):
        info = context.record(as_bytes(record["data"]), Info, "messages")
        if info is not None:
            session.add_message(info, parts.get(record["id"], []))
    return session.conversation


def _find_session(connection: sqlite3.Connection, session_id: str) -> ForeignLink | None:
    row = connection.execute(_FIND, (session_id,)).fetchone()
    if row is None or not isinstance(row["time_created"], int | float):
        return None
    return ForeignLink(str(row["id"]), str(row["title"] or ""), moment(row["time_created"]))
