"""goose's database: `~/.local/share/goose/sessions/sessions.db`, tables `sessions` and `messages`.

Looked at: goose 1.52.0, and the migrations of its schema since 1.10. `content_json` and `metadata_json` of a message
are the fields `content` and `metadata` of a message that goose.py reads. A sub-agent is a session of the type
`sub_agent`, named by the result of the call of the tool `delegate`.
"""

import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

from errand.engine.data.importers.conversation import ForeignConversation, ForeignLink, moment
from errand.engine.data.importers.foreign_database import MAX_SESSION_BYTES, MAX_SESSIONS, as_bytes, reading
from errand.engine.data.importers.goose import Message, Metadata, Piece, Session
from errand.engine.data.importers.import_context import ImportContext

TABLES = ("sessions", "messages")
# Columns that newer versions added, and what an older database has in their place.
_SESSION_COLUMNS = {
    "name": "''",
    "description": "''",
    "session_type": "'user'",
    "working_dir": "''",
    "created_at": "NULL",
    "updated_at": "NULL",
    "parent_session_id": "NULL",
}
_MESSAGE_COLUMNS = {"metadata_json": "NULL"}
_SIZE = "SELECT coalesce(sum(length(content_json)), 0) AS size, count(*) AS messages FROM messages WHERE session_id = ?"
_MAX_MESSAGES = 500_000
# Sessions for goose's own use, such as those that write a title.
_HIDDEN = "hidden"
_SUB_AGENT = "sub_agent"


def sessions(path: Path) -> list[tuple[str, int]]:
    """Return the id of each session that no other called, and when it changed, in milliseconds since 1970.

    Raises `InvalidParams` as `read` does.
    """
    with reading(path) as connection:
        rows = connection.execute(f"{_session_query(connection)} LIMIT ?", (MAX_SESSIONS,))
        every = [(str(row["id"]), row["session_type"], moment(_text(row["updated_at"]))) for row in rows]
    return [
        (session_id, int(at.timestamp() * 1000) if at is not None else 0)
        for session_id, kind, at in every
        if kind not in (_SUB_AGENT, _HIDDEN)
    ]


def read(path: Path, context: ImportContext, only: Collection[str] | None = None) -> Iterator[ForeignConversation]:
    """Yield the sessions, or those of the ids `only`. Raises `InvalidParams` for a database that cannot be read."""
    with reading(path) as connection:
        query = _session_query(connection)
        every = connection.execute(f"{query} ORDER BY created_at, id LIMIT ?", (MAX_SESSIONS,)).fetchall()
        for row in every:
            if row["session_type"] == _HIDDEN or (only is not None and row["id"] not in only):
                continue
            conversation = _conversation(connection, row, context)
            if conversation is not None:
                yield conversation


def _conversation(
    connection: sqlite3.Connection, row: sqlite3.Row, context: ImportContext
) -> ForeignConversation | None:
    size = connection.execute(_SIZE, (row["id"],)).fetchone()
    if size["size"] > MAX_SESSION_BYTES or size["messages"] > _MAX_MESSAGES:
        context.skip("conversations that are too large")
        return None

    def find(session_id: str) -> ForeignLink | None:
        session_row = connection.execute(f"{_session_query(connection)} WHERE id = ?", (session_id,)).fetchone()
        return _link(session_row) if session_row is not None else None

    session = Session(context, find)
    is_called = row["session_type"] == _SUB_AGENT
    session.begin(
        source_id=str(row["id"]),
        title=_title(row),
        folder=_text(row["working_dir"]),
        created_at=moment(_text(row["created_at"])),
        updated_at=moment(_text(row["updated_at"])),
        is_called=is_called,
        caller=find(_text(row["parent_session_id"])) if is_called else None,
    )
    columns = _columns(connection, "messages", _MESSAGE_COLUMNS)
    query = f"SELECT role, content_json, created_timestamp, {columns} FROM messages"
    for record in connection.execute(
        f"{query} WHERE session_id = ? ORDER BY created_timestamp, messages.id", (row["id"],)
    ):
        pieces = context.record(as_bytes(record["content_json"]), list[Piece], "messages")
        metadata_json = record["metadata_json"]
        metadata = (
            context.record(as_bytes(metadata_json), Metadata, "messages") if metadata_json is not None else Metadata()
        )
        if pieces is not None and metadata is not None:
            created = record["created_timestamp"]
            at = created if isinstance(created, int | float) else None
            session.add_message(Message(role=_text(record["role"]), created=at, content=pieces, metadata=metadata))
    return session.conversation


def _session_query(connection: sqlite3.Connection) -> str:
    return f"SELECT substr(id, 1, 200) AS id, {_columns(connection, 'sessions', _SESSION_COLUMNS)} FROM sessions"


def _columns(connection: sqlite3.Connection, table: str, constants: dict[str, str]) -> str:
    """Return a select list: the columns that the table has, and constants in place of the others."""
    there = {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
    return ", ".join(f"{name if name in there else constant} AS {name}" for name, constant in constants.items())


def _link(row: sqlite3.Row) -> ForeignLink:
    return ForeignLink(str(row["id"]), _title(row), moment(_text(row["created_at"])))


def _title(row: sqlite3.Row) -> str:
    return (_text(row["name"]) or _text(row["description"]))[:1000]


def _text(value: object) -> str:
    return value[:4096] if isinstance(value, str) else ""
