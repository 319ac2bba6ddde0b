"""OpenCode's database: `~/.local/share/opencode/opencode.db`, tables `session`, `message` and `part`.

Looked at: OpenCode 1.18.33. `data` of a message and a part is the record that opencode.py reads, without its ids. The
database is read while OpenCode runs: in one read transaction, which blocks nobody and sees one state. Nothing in it is
trusted: it may be any file, so that only tables are read, sizes are checked before values, and steps are limited.
"""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import msgspec

from errand.engine.core.errors import InvalidParams
from errand.engine.core.input_limits import LARGEST_RECORD
from errand.engine.data.importers.conversation import ForeignConversation, ForeignLink, moment
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.opencode import Info, Part, Session

SIGN = b"SQLite format 3\0"
_TABLES = ("session", "message", "part")
_MOST_SESSIONS = 100_000
_LARGEST_SESSION = 128 * 1024 * 1024
_MOST_PARTS = 500_000
# Steps of SQLite's machine for the whole database; a minute or two. A million parts take 20 million.
_STEPS = 100_000
_MOST_STEPS = 20_000 * _STEPS
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
    """The id of each session that no other called, and when it changed, in milliseconds since 1970.

    Raises `InvalidParams` as `read` does.
    """
    try:
        with closing(_open(path)) as connection:
            _check_tables(connection)
            return [(str(row["id"]), int(row["time_updated"])) for row in connection.execute(_TIMES, (_MOST_SESSIONS,))]
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise InvalidParams(f"its database cannot be read ({error})") from error


def read(path: Path, context: ImportContext, only: Collection[str] | None = None) -> Iterator[ForeignConversation]:
    """The sessions, or those of the ids `only`.

    Raises `InvalidParams` for a database that is not OpenCode's, or that cannot be read.
    """
    try:
        with closing(_open(path)) as connection:
            _check_tables(connection)
            connection.execute("BEGIN")
            every = [row["id"] for row in connection.execute(_IDS, (_MOST_SESSIONS,))]
            ids = every if only is None else [one for one in every if one in only]
            for session_id in ids:
                row = connection.execute(_SESSION, (session_id,)).fetchone()
                conversation = _conversation(connection, row, context) if row is not None else None
                if conversation is not None:
                    yield conversation
    except sqlite3.Error as error:
        raise InvalidParams(f"its database cannot be read ({error})") from error


def _open(path: Path) -> sqlite3.Connection:
    wal = path.with_name(f"{path.name}-wal")
    # Without a write-ahead log nobody writes, and no file is made beside the database.
    mode = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
    # The importer reads in several threads, one after the other.
    connection = sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=5, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.isolation_level = None
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_RECORD * 2)
    _limit_steps(connection)
    for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _check_tables(connection: sqlite3.Connection) -> None:
    """A view or a virtual table could compute for ever."""
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' LIMIT 1000").fetchall()
    plain = {row["name"] for row in found if "VIRTUAL" not in str(row["sql"]).upper().split("(")[0]}
    if not plain.issuperset(_TABLES):
        raise InvalidParams("it is a database, but not one with the tables of OpenCode")


def _conversation(
    connection: sqlite3.Connection, row: sqlite3.Row, context: ImportContext
) -> ForeignConversation | None:
    size = connection.execute(_SIZE, {"id": row["id"]}).fetchone()
    if size["size"] > _LARGEST_SESSION or size["parts"] > _MOST_PARTS:
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
        session = Session(msgspec.convert(facts, Info), context, lambda session_id: _found(connection, session_id))
    except msgspec.ValidationError:
        context.skip("sessions that cannot be read")
        return None
    parts: dict[str, list[Part]] = {}
    for record in connection.execute(_PARTS, (row["id"],)):
        part = context.record(_bytes(record["data"]), Part, "parts")
        if part is not None:
            parts.setdefault(record["message_id"], []).append(part)
    for record in connection.execute(_MESSAGES, (row["id"],)):
        info = context.record(_bytes(record["data"]), Info, "messages")
        if info is not None:
            session.add_message(info, parts.get(record["id"], []))
    return session.conversation


def _found(connection: sqlite3.Connection, session_id: str) -> ForeignLink | None:
    row = connection.execute(_FIND, (session_id,)).fetchone()
    if row is None or not isinstance(row["time_created"], int | float):
        return None
    return ForeignLink(str(row["id"]), str(row["title"] or ""), moment(row["time_created"]))


def _limit_steps(connection: sqlite3.Connection) -> None:
    """The statement that exceeds the limit raises `sqlite3.OperationalError`."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += _STEPS
        return int(steps > _MOST_STEPS)

    connection.set_progress_handler(step, _STEPS)


def _bytes(data: object) -> bytes:
    """A column may hold any type."""
    return data.encode("utf-8", "replace") if isinstance(data, str) else data if isinstance(data, bytes) else b""
