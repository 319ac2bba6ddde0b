"""Writes for the journal, upserts, and the encoding of values."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Table, text
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.dialects.sqlite.dml import OnConflictDoNothing, OnConflictDoUpdate
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import UpdateBase

from errand.engine.core.errors import StorageError

Value: TypeAlias = str | int | float | bool | None

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Write:
    """A statement with its parameters.

    Reuse `statement` (its SQL is cached by identity), always with the same parameter names.
    """

    statement: UpdateBase
    parameters: Mapping[str, Value]


def upsert(table: Table, key: Sequence[str], columns: Sequence[str] = (), *, only_if: str = "") -> Insert:
    """Return an insert that changes these columns of a row that exists; without columns the row stays as it is.

    `only_if`: an SQL condition on `excluded` (the new row) and the table, else the row stays too.
    """
    # `inline`: SQLAlchemy would ask PostgreSQL for generated numbers, by a RETURNING in the wrong place.
    statement = insert(table).inline()
    if not columns:
        return statement.on_conflict_do_nothing(index_elements=key)
    changes = {name: statement.excluded[name] for name in columns}
    return statement.on_conflict_do_update(index_elements=key, set_=changes, where=text(only_if) if only_if else None)


def is_one_of(column: ColumnElement[T], values: Collection[T]) -> ColumnElement[bool]:
    """`column IN (…)` for some hundreds of values at most.

    The list is filled up with its last value to a power of two. Each length is a statement of its own, and each
    connection keeps the statements that it prepared, of some kilobytes each.
    """
    listed = list(values)
    filled = 1 << (len(listed) - 1).bit_length() if listed else 0
    return column.in_([*listed, *listed[-1:] * (filled - len(listed))])


@compiles(OnConflictDoNothing, "postgresql")
@compiles(OnConflictDoUpdate, "postgresql")
def in_postgresql(clause: OnConflictDoNothing | OnConflictDoUpdate, compiler: SQLCompiler, **options: Any) -> str:
    """PostgreSQL's own clause has one attribute more; with SQLite its dialect (30 ms to import) is not loaded."""
    vars(clause)["constraint_target"] = None
    return getattr(compiler, f"visit_{clause.__visit_name__}")(clause, **options)


def to_json(value: object) -> str:
    """JSON text of a struct or a JSON value."""
    return _encoder.encode(value).decode()


def from_json(text: str, shape: type[T]) -> T:
    """Return a stored struct. Raises `StorageError` if the row was not written by this version."""
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
    in_utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    # Without a zone it takes half the time, and a step of a task writes ten of them.
    return f"{in_utc.replace(tzinfo=None).isoformat(timespec='microseconds')}+00:00"
