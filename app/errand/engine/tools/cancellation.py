"""Ends work at once when the cancel signal of a task is set."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from errand.engine.core.cancel import CancelSignal
from errand.engine.tools.results import ToolError

T = TypeVar("T")


async def until_cancelled(work: Coroutine[None, None, T], cancel: CancelSignal) -> T:
    """Return the result of the work, which runs in an asyncio task of its own.

    Raises `ToolError` as soon as `cancel` is set; the work is cancelled, and what it does then is waited for.
    """
    running = asyncio.ensure_future(work)
    unsubscribe = cancel.subscribe(lambda: _cancel(running))
    try:
        return await running
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ToolError("Operation aborted") from None
    finally:
        unsubscribe()
        running.cancel()


def _cancel(running: "asyncio.Future[T]") -> None:
    running.cancel()
