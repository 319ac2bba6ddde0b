"""Partial results of running tools on their way to the listeners, in the order in which the tools gave them."""

import asyncio
from collections import deque

from app.engine.agent.events import ToolExecutionUpdate
from app.engine.agent.run import Run
from app.engine.messages import ToolCall
from app.engine.tools.base import ToolResult

_MOST_WAITING = 1000


class Updates:
    """The updates of one batch. Tools give them at any time, without waiting; a task delivers them.

    Who emits another event of the batch calls `flush` before, so that nothing overtakes an update. Tools that are
    faster than the listeners lose their oldest updates: they are for showing only.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting: deque[ToolExecutionUpdate] = deque(maxlen=_MOST_WAITING)
        self._delivery: asyncio.Task[None] | None = None
        self._delivering = asyncio.Lock()

    def put(self, update: ToolExecutionUpdate) -> None:
        self._waiting.append(update)
        # After a listener has raised, nothing more is delivered: `settle` will say so.
        if self._delivery is None or (self._delivery.done() and self._delivery.exception() is None):
            self._delivery = asyncio.create_task(self.flush())

    async def flush(self) -> None:
        """Return when all that was given so far has reached the listeners, whoever delivers it."""
        async with self._delivering:
            while self._waiting:
                await self._run.emit(self._waiting.popleft())

    async def settle(self) -> None:
        """Wait until all are delivered; raises what a listener raised."""
        if self._delivery is not None:
            await asyncio.shield(self._delivery)

    async def close(self) -> None:
        """End the delivery, whatever happened."""
        self._waiting.clear()
        if self._delivery is None:
            return
        self._delivery.cancel()
        await asyncio.gather(self._delivery, return_exceptions=True)  # what it raised, `settle` has raised


class CallUpdates:
    """The updates of one call: what comes after `close` is dropped. `given` says whether there were any."""

    def __init__(self, call: ToolCall, updates: Updates) -> None:
        self._call = call
        self._updates = updates
        self._open = True
        self.given = False

    def put(self, result: ToolResult) -> None:
        if self._open:
            self.given = True
            self._updates.put(ToolExecutionUpdate(self._call.id, self._call.name, self._call.arguments, result))

    def close(self) -> None:
        self._open = False
