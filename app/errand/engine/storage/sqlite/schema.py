"""Creates or migrates the schema, with the triggers that keep the audit append-only."""

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, text

from errand.engine.storage.sqlite.search_index import CREATE_SEARCH, CREATE_TITLES
from errand.engine.storage.sqlite.tables import metadata

_REFUSE = "BEGIN SELECT RAISE(ABORT, '{0} is append-only'); END"

_EXECUTION_STAYS = """
WHEN NOT EXISTS (
    SELECT 1 FROM removals JOIN tasks ON tasks.conversation_id = removals.conversation_id WHERE tasks.id = old.task_id
)
"""

_EXECUTION_IS_KEPT = """
WHEN NOT EXISTS (
    SELECT 1 FROM forgets JOIN tasks ON tasks.conversation_id = forgets.conversation_id WHERE tasks.id = old.task_id
)
"""

# A grant for a workspace belongs to no conversation, wherever it was granted.
_GRANT_STAYS = """
WHEN NOT EXISTS (
    SELECT 1 FROM removals WHERE json_extract(old.body, '$.scope') = 'conversation'
    AND json_extract(old.body, '$.scopeId') = removals.conversation_id
)
"""

CREATE_GUARDS = tuple(
    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} {condition} {_REFUSE.format(table)}"
    for table, condition_of_update, condition_of_delete in (
        ("tool_executions", _EXECUTION_IS_KEPT, _EXECUTION_STAYS),
        ("grants", "", _GRANT_STAYS),
        ("memory_log", "", ""),
    )
    for verb, condition in (("UPDATE", condition_of_update), ("DELETE", condition_of_delete))
)

# Oldest first; a test compares them with the migrations.
REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
)
HEAD = REVISIONS[-1]

MIGRATIONS = Path(__file__).parents[1] / "migrations"


OF_SQLITE = (*CREATE_GUARDS, *CREATE_SEARCH, *CREATE_TITLES)


def create(connection: Connection, beside_tables: Sequence[str] = OF_SQLITE) -> None:
    """Create all tables in an empty database, in the newest revision; then what only this kind of database has."""
    metadata.create_all(connection, checkfirst=False)
    for statement in beside_tables:
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version "
        "(version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.execute(text("INSERT INTO alembic_version (version_num) VALUES (:head)"), {"head": HEAD})


def migrate(connection: Connection) -> None:
    """Migrate an older database to the newest revision, in the current transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
