"""Long database work, split into short transactions between which others can commit."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sql.journal import Journal

# Long work holds the journal this long, plus its last step. If others wait then, it lets them work: a client's command
# needs up to three commits, and would wait for a slice at each.
_SLICE_S = 0.005
_PAUSE_S = 0.015


async def in_slices(journal: Journal, step: Callable[[AsyncConnection], Awaitable[bool]]) -> None:
    """Run `step` repeatedly until it returns False. Steps within one time slice are committed together.

    The slices are not durable by themselves: the caller ends with a durable change, and a crash in between leaves the
    mark by which the next start removes what is incomplete.
    """

    async def work(connection: AsyncConnection) -> bool:
        end = time.monotonic() + _SLICE_S
        while await step(connection):
            if time.monotonic() >= end:
                return True
        return False

    while await journal.transact(work, durable=False):
        if journal.is_busy:
            await asyncio.sleep(_PAUSE_S)
