"""The schema of the database: which revision it is in, made at once when new, migrated when older.

Alembic is imported for a migration only: it takes longer to import than the engine takes to start.
"""

from pathlib import Path

from sqlalchemy import Connection, text

from app.engine.storage.append_only import CREATE_GUARDS
from app.engine.storage.search_schema import CREATE_SEARCH
from app.engine.storage.tables import metadata
from app.engine.storage.title_schema import CREATE_TITLES

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
)
HEAD = REVISIONS[-1]

MIGRATIONS = Path(__file__).parent / "migrations"


def create(connection: Connection) -> None:
    """All tables of an empty database, in the newest revision."""
    metadata.create_all(connection, checkfirst=False)
    if connection.dialect.name == "sqlite":
        for statement in (*CREATE_GUARDS, *CREATE_SEARCH, *CREATE_TITLES):
            connection.exec_driver_sql(statement)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version "
        "(version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.execute(text("INSERT INTO alembic_version (version_num) VALUES (:head)"), {"head": HEAD})


def migrate(connection: Connection) -> None:
    """Bring an older database to the newest revision, in the transaction that is open."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
