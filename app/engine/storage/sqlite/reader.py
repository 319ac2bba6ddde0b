"""Reads on pooled connections, and page cursors."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Row
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.sql.expression import Executable

from app.engine.core.errors import InvalidParams, StorageError
from app.engine.core.resources import Health
from app.engine.storage.sqlite.errors import condition, condition_kind, error_text
from app.engine.storage.sqlite.statements import Value, from_json

T = TypeVar("T")


def cursor_at(moment: str, row_id: str) -> str:
    """`moment` in its database format."""
    return f"{moment} {row_id}"


def parse_cursor(cursor: str) -> tuple[str, str]:
    """The moment and the id. Raises `InvalidParams` for an invalid cursor."""
    moment, space, row_id = cursor.partition(" ")
    if not space or not row_id:
        raise InvalidParams("cursor: not one that a page of this list gave")
    return moment, row_id


class Reader:
    """Runs one statement on a pooled connection. Raises `StorageError` for database errors; reports damage."""

    def __init__(self, engine: AsyncEngine, health: Health) -> None:
        self._engine = engine
        self._health = health

    async def rows(self, statement: Executable, parameters: Mapping[str, Value] | None = None) -> Sequence[Row[Any]]:
        try:
            async with self._engine.connect() as connection:
                return (await connection.execute(statement, parameters)).all()
        except SQLAlchemyError as error:
            if condition_kind(error_text(error)) == "damaged":
                self._health.report(condition("damaged", self._engine.url.database or ""))
            raise StorageError(
                f"The database cannot be read: {error_text(error)}. "
                "Nothing was changed. To mend it: errand doctor --repair. Copies of it are in the copies folder."
            ) from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise InvalidParams(f"The database cannot look for this value: {error}.") from error

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
