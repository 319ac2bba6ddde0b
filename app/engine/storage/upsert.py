"""An INSERT that replaces the row with the same key; in the words SQLite and PostgreSQL share."""

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Insert, Table
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler


class Upsert(Insert):
    """`only_if` is an SQL condition over `excluded` (the new row) and the table: without it the old row stays."""

    inherit_cache = False

    def __init__(self, table: Table, key: Sequence[str], columns: Sequence[str], only_if: str = "") -> None:
        super().__init__(table)
        self.key = tuple(key)
        self.columns = tuple(columns)
        self.only_if = only_if


@compiles(Upsert)
def render(statement: Upsert, compiler: SQLCompiler, **options: Any) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in statement.columns)
    condition = f" WHERE {statement.only_if}" if statement.only_if else ""
    action = f"DO UPDATE SET {changes}{condition}" if changes else "DO NOTHING"
    insert = cast(str, compiler.visit_insert(statement, **options))  # pyright: ignore[reportUnknownMemberType] -- untyped
    return f"{insert} ON CONFLICT ({', '.join(statement.key)}) {action}"
