"""Saving the end of a task: tried again for as long as that may help, on a disk that is full for example."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from app.engine.errors import StorageError

_logger = logging.getLogger(__name__)

# Each second, for ten minutes.
_AGAIN_S = 1.0
_MOST_TRIES = 600


async def until_saved(
    task_id: str, save: Callable[[], Awaitable[None]], again: Callable[[], None], engine_ends: asyncio.Event
) -> None:
    """A task counts as under way until its end is saved; an engine that ends before leaves it interrupted.

    `again` puts anew what `save` could not save.
    """
    for _ in range(_MOST_TRIES):
        try:
            await save()
            return
        except StorageError as error:
            _logger.error("the end of task %s is not saved, trying again: %s", task_id, error)
        with suppress(TimeoutError):
            async with asyncio.timeout(_AGAIN_S):
                await engine_ends.wait()
            return
        again()
