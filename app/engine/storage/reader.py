"""Reads: pooled connections of their own, so that no read waits for the writer."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Row
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.sql.expression import Executable

from app.engine.errors import InvalidParams, StorageError
from app.engine.health import Health
from app.engine.storage.encoding import from_json
from app.engine.storage.failure import reason
from app.engine.storage.trouble import condition, kind_of
from app.engine.storage.write import Value

T = TypeVar("T")


class Reader:
    """Runs one statement on a pooled connection. What the database refuses is a StorageError; damage is reported."""

    def __init__(self, engine: AsyncEngine, health: Health) -> None:
        self._engine = engine
        self._health = health

    async def rows(self, statement: Executable, parameters: Mapping[str, Value] | None = None) -> Sequence[Row[Any]]:
        try:
            async with self._engine.connect() as connection:
                return (await connection.execute(statement, parameters)).all()
        except SQLAlchemyError as error:
            if kind_of(reason(error)) == "damaged":
                self._health.report(condition("damaged", self._engine.url.database or ""))
            raise StorageError(
                f"The database cannot be read: {reason(error)}. "
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
