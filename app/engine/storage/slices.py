"""Long work on the database in transactions of a few milliseconds: everybody else commits in between."""

import time
from collections.abc import Awaitable, Callable

from sqlalchemy.ext.asyncio import AsyncConnection

from app.engine.storage.journal import Journal

_SLICE_S = 0.01


async def in_slices(journal: Journal, step: Callable[[AsyncConnection], Awaitable[bool]]) -> None:
    """Take small steps until one says that nothing is left. Those of one slice are committed together."""

    async def work(connection: AsyncConnection) -> bool:
        end = time.monotonic() + _SLICE_S
        while await step(connection):
            if time.monotonic() >= end:
                return True
        return False

    while await journal.transact(work):
        pass
