"""Reads with their errors in words, and page cursors."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.sql.expression import Executable

from errand.engine.core.errors import InvalidParams, StorageError
from errand.engine.storage.sql.errors import condition, error_text, refuses_value, trouble_of
from errand.engine.storage.sql.journal import Journal
from errand.engine.storage.sql.statements import Value, from_json
from errand.protocol.engine import Trouble
from errand.text.redaction import redact

T = TypeVar("T")

# While the server is away; the journal tries as often.
_RETRY_S = 1.0


def cursor_at(moment: str, row_id: str) -> str:
    """`moment` in its database format."""
    return f"{moment} {row_id}"


def parse_cursor(cursor: str) -> tuple[str, str]:
    """Return the moment and the id. Raises `InvalidParams` for an invalid cursor."""
    moment, space, row_id = cursor.partition(" ")
    if not space or not row_id:
        raise InvalidParams("cursor: not one that a page of this list gave")
    return moment, row_id


_is_patient: ContextVar[bool] = ContextVar("reads wait for the database", default=False)


def begin_patience() -> None:
    """Let this asyncio task and those it starts wait while the database server is away."""
    _is_patient.set(True)


class Reads(Protocol):
    """Runs one statement on a connection that is free. Raises errors of SQLAlchemy, `OSError` for a server's socket."""

    async def rows(self, statement: Executable, parameters: Mapping[str, Value] | None) -> Sequence[Row[Any]]: ...

    async def close(self) -> None:
        """Wait for reads that are under way, not longer than a moment."""
        ...


class Reader:
    """Reads the database that is called `name`. Raises `StorageError` for database errors; reports damage.

    `redact` is for the beginnings of texts that stores show; what is stored is read as it is.
    A server that is away is reported through the journal, which notices when it is back.
    """

    def __init__(self, reads: Reads, journal: Journal, name: str, redact: Callable[[str], str] = redact) -> None:
        self.redact = redact
        self._reads = reads
        self._journal = journal
        self._name = name

    async def rows(self, statement: Executable, parameters: Mapping[str, Value] | None = None) -> Sequence[Row[Any]]:
        is_first = True
        while True:
            try:
                return await self._reads.rows(statement, parameters)
            except (UnicodeEncodeError, OverflowError) as error:
                raise InvalidParams(f"The database cannot look for this value: {error}.") from error
            except (SQLAlchemyError, OSError) as error:
                kind = trouble_of(error)
                if is_first and isinstance(error, DBAPIError) and error.connection_invalidated:
                    is_first = False  # the connection was lost since its last use; a new one may work
                    continue
                if kind == "unreachable":
                    self._journal.suspect()
                    if not _is_patient.get():
                        away = condition(kind, self._name)
                        raise StorageError(f"{away.text} {away.advice}") from error
                else:
                    if refuses_value(error):
                        raise InvalidParams(f"The database cannot look for this value: {error_text(error)}.") from error
                    raise self._failure(error, kind) from error
            await asyncio.sleep(_RETRY_S)

    def _failure(self, error: SQLAlchemyError | OSError, kind: Trouble | None) -> StorageError:
        if kind == "damaged":
            self._journal.health.report(condition("damaged", self._name))
        return StorageError(
            f"The database cannot be read: {error_text(error)}. "
            "Nothing was changed. To mend it: errand doctor --repair. Copies of it are in the copies folder."
        )

    async def structs(
        self, statement: Executable, shape: type[T], parameters: Mapping[str, Value] | None = None
    ) -> tuple[T, ...]:
        """Return the statement's first column, decoded from JSON."""
        return tuple(from_json(row[0], shape) for row in await self.rows(statement, parameters))

    async def struct(
        self, statement: Executable, shape: type[T], parameters: Mapping[str, Value] | None = None
    ) -> T | None:
        records = await self.structs(statement, shape, parameters)
        return records[0] if records else None
