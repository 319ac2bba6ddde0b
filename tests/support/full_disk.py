"""A database on a full disk, which refuses every change, or on a slow one, while an engine has it open."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

_TABLES = ("conversations", "agents", "tasks", "nodes", "turns", "tool_executions", "asks", "events", "meta")


@contextmanager
def full_disk(database: Path) -> Generator[None]:
    """Every insert fails from here on until the block is left."""
    _run(
        database,
        *(
            f"CREATE TRIGGER full_{table} BEFORE INSERT ON {table} "
            "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            for table in _TABLES
        ),
    )
    try:
        yield
    finally:
        _run(database, *(f"DROP TRIGGER full_{table}" for table in _TABLES))


@contextmanager
def slow_disk(database: Path) -> Generator[None]:
    """No change is saved until the block is left, which has to be within 5 s."""
    with closing(sqlite3.connect(database, timeout=10, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def _run(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database, timeout=10)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement)
