"""One change to the database, as the journal takes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy.sql.dml import UpdateBase

Value: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Write:
    """A statement with its parameters.

    `statement` is made once and used again (its SQL is kept by identity), always with the same names of parameters.
    `on_commit` runs on the event loop once it is committed, in the order of the writes.
    """

    statement: UpdateBase
    parameters: Mapping[str, Value]
    on_commit: Callable[[], None] | None = None
