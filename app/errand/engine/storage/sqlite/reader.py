"""Reads on pooled connections, and page cursors."""

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.sql.expression import Executable

from errand.engine.core.errors import InvalidParams, StorageError
from errand.engine.storage.sqlite.async_engine import AsyncEngine
from errand.engine.storage.sqlite.errors import condition, error_text, name_of, refuses_value, trouble_of
from errand.engine.storage.sqlite.journal import Journal
from errand.engine.storage.sqlite.statements import Value, from_json
from errand.protocol.engine import Trouble

T = TypeVar("T")

# While the server is away; the journal tries as often.
_RETRY_S = 1.0
# When the database is closed, for reads that nobody waits for any more.
_LAST_S = 1.0


def cursor_at(moment: str, row_id: str) -> str:
    """`moment` in its database format."""
    return f"{moment} {row_id}"


def parse_cursor(cursor: str) -> tuple[str, str]:
    """The moment and the id. Raises `InvalidParams` for an invalid cursor."""
    moment, space, row_id = cursor.partition(" ")
    if not space or not row_id:
        raise InvalidParams("cursor: not one that a page of this list gave")
    return moment, row_id


_is_patient: ContextVar[bool] = ContextVar("reads wait for the database", default=False)


def begin_patience() -> None:
    """From here on, this asyncio task and those it starts wait while the database server is away."""
    _is_patient.set(True)


class Reader:
    """Runs one statement on a pooled connection. Raises `StorageError` for database errors; reports damage.

    A server that is away is reported through the journal, which notices when it is back. A read whose caller is
    cancelled goes on to its end: half read, it would hold the state of the database until its objects are collected.
    On a server each read is a transaction of its own, so that it takes one round trip.
    """

    def __init__(self, engine: AsyncEngine, journal: Journal) -> None:
        is_file = engine.dialect.name == "sqlite"
        self._engine = engine if is_file else engine.execution_options(isolation_level="AUTOCOMMIT")
        self._journal = journal
        self._running: set[asyncio.Task[Sequence[Row[Any]]]] = set()

    async def rows(self, statement: Executable, parameters: Mapping[str, Value] | None = None) -> Sequence[Row[Any]]:
        is_first = True
        while True:
            try:
                return await asyncio.shield(self._begin(statement, parameters))
            except (SQLAlchemyError, OSError) as error:
                kind = trouble_of(error)
                if is_first and isinstance(error, DBAPIError) and error.connection_invalidated:
                    is_first = False  # the connection was lost since its last use; a new one may work
                    continue
                if kind == "unreachable":
                    self._journal.suspect()
                    if not _is_patient.get():
                        away = condition(kind, name_of(self._engine))
                        raise StorageError(f"{away.text} {away.advice}") from error
                else:
                    if refuses_value(error):
                        raise InvalidParams(f"The database cannot look for this value: {error_text(error)}.") from error
                    raise self._failure(error, kind) from error
            await asyncio.sleep(_RETRY_S)

    async def close(self) -> None:
        """Wait for reads that are under way, not longer than a moment."""
        if self._running:
            await asyncio.wait(self._running, timeout=_LAST_S)

    def _begin(self, statement: Executable, parameters: Mapping[str, Value] | None) -> asyncio.Task[Sequence[Row[Any]]]:
        reading = asyncio.get_running_loop().create_task(self._rows(statement, parameters), name="storage read")
        self._running.add(reading)
        reading.add_done_callback(self._on_read)
        return reading

    def _on_read(self, reading: asyncio.Task[Sequence[Row[Any]]]) -> None:
        self._running.discard(reading)
        if not reading.cancelled():
            reading.exception()  # its caller may be gone

    async def _rows(self, statement: Executable, parameters: Mapping[str, Value] | None) -> Sequence[Row[Any]]:
        try:
            async with self._engine.connect() as connection:
                return (await connection.execute(statement, parameters)).all()
        except (UnicodeEncodeError, OverflowError) as error:
            raise InvalidParams(f"The database cannot look for this value: {error}.") from error

    def _failure(self, error: SQLAlchemyError | OSError, kind: Trouble | None) -> StorageError:
        if kind == "damaged":
            self._journal.health.report(condition("damaged", name_of(self._engine)))
        return StorageError(
            f"The database cannot be read: {error_text(error)}. "
            "Nothing was changed. To mend it: errand doctor --repair. Copies of it are in the copies folder."
        )

    async def structs(
        self, statement: Executable, shape: type[T], parameters: Mapping[str, Value] | None = None
    ) -> tuple[T, ...]:
        """The statement's first column, decoded from JSON."""
        return tuple(from_json(row[0], shape) for row in await self.rows(statement, parameters))

    async def struct(
        self, statement: Executable, shape: type[T], parameters: Mapping[str, Value] | None = None
    ) -> T | None:
        found = await self.structs(statement, shape, parameters)
        return found[0] if found else None
