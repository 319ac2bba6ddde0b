"""Tasks have their fields in groups, in their rows and in stored events."""

from collections.abc import Iterator

from alembic import op
from sqlalchemy import Connection, text

from errand.engine.core.errors import StorageError
from errand.engine.storage.records.flat_tasks import grouped_task
from errand.engine.storage.sql.statements import from_json, to_json
from errand.protocol.base import JsonObject

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_ROWS_AT_ONCE = 500
# Texts cannot contain this pattern: their quotes are escaped.
_UPDATES = """body LIKE '%"type":"taskUpdate"%'"""


def upgrade() -> None:
    connection = op.get_bind()
    # Results of commands have tasks too. Their clients speak another version of the protocol: none comes again.
    connection.execute(text("DELETE FROM commands"))
    for key, task in stored_objects(connection, "tasks", "id", "id > :last", ""):
        _save(connection, "tasks", "id", key, grouped_task(task))
    for key, record in stored_objects(connection, "events", "sequence", f"sequence > :last AND {_UPDATES}", 0):
        match record:
            case {"event": {"type": "taskUpdate", "task": dict(task)} as event}:
                record["event"] = {**event, "task": grouped_task(task)}
                _save(connection, "events", "sequence", key, record)
            case _:
                pass


def stored_objects(
    connection: Connection, table: str, key: str, condition: str, last: str | int
) -> Iterator[tuple[str | int, JsonObject]]:
    """Yield key and body of the rows by their key, some hundred in memory at a time.

    A damaged row stays as it is: who reads it is told, and the others can be read.
    """
    query = text(f"SELECT {key}, body FROM {table} WHERE {condition} ORDER BY {key} LIMIT {_ROWS_AT_ONCE}")
    while rows := connection.execute(query, {"last": last}).all():
        for row in rows:
            last = row[0]
            try:
                body = from_json(row[1], JsonObject)
            except StorageError:
                continue
            yield row[0], body


def _save(connection: Connection, table: str, key: str, value: str | int, body: JsonObject) -> None:
    statement = text(f"UPDATE {table} SET body = :body WHERE {key} = :key")
    connection.execute(statement, {"body": to_json(body), "key": value})


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
