"""Writes for the journal, upserts, and the encoding of values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar, cast

import msgspec
from sqlalchemy import Insert, Table
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import UpdateBase

from app.engine.core.errors import StorageError

Value: TypeAlias = str | int | float | bool | None

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Write:
    """A statement with its parameters.

    Reuse `statement` (its SQL is cached by identity), always with the same parameter names. `on_commit` runs on the
    event loop after the commit, in the order of the writes.
    """

    statement: UpdateBase
    parameters: Mapping[str, Value]
    on_commit: Callable[[], None] | None = None


class Upsert(Insert):
    """An upsert. `only_if`: an SQL condition on `excluded` (the new row) and the table, else the old row stays."""

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


def to_json(value: object) -> str:
    """JSON text of a struct or a JSON value."""
    return _encoder.encode(value).decode()


def from_json(text: str, shape: type[T]) -> T:
    """A stored struct. Raises `StorageError` if the row was not written by this version."""
    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.DecodeError as error:
        raise StorageError(
            f"A stored {shape.__name__} cannot be read ({error}). The row was left as it is; "
            "a copy from the copies folder may hold it whole."
        ) from error


def to_text(moment: datetime) -> str:
    """UTC in a fixed width, so that texts sort like times."""
    assert moment.tzinfo is not None, "times are aware"
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
