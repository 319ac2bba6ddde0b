"""Creates the schema in an empty database, or migrates that of an older one."""

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, text

from errand.engine.storage.sql.tables import metadata

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
    "0016",
    "0017",
    "0018",
)
HEAD = REVISIONS[-1]

MIGRATIONS = Path(__file__).parents[1] / "migrations"


def create(connection: Connection, beside_tables: Sequence[str]) -> None:
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
