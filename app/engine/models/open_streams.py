"""The streams of one model under way, so that closing the model ends them."""

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager

from app.engine.cancel import CancelSignal
from app.engine.models.base import ModelEvent, ModelRequest
from app.engine.models.retry import Attempt, RetryPolicy, with_retries


class OpenStreams:
    """Gives each stream a stop signal that follows the task's cancel signal and the closing of the model."""

    def __init__(self) -> None:
        self._stops: set[CancelSignal] = set()
        self._closed = False

    @contextmanager
    def join(self, cancel: CancelSignal) -> Generator[CancelSignal]:
        stop = CancelSignal()
        if self._closed:
            stop.set("the model was closed")
        unsubscribe = cancel.subscribe(lambda: stop.set(cancel.reason))
        self._stops.add(stop)
        try:
            yield stop
        finally:
            unsubscribe()
            self._stops.discard(stop)

    async def of(
        self, attempt: Attempt, request: ModelRequest, cancel: CancelSignal, retry: RetryPolicy
    ) -> AsyncGenerator[ModelEvent, None]:
        """The stream of one reply, from as many attempts as it takes."""
        with self.join(cancel) as stop:
            async with aclosing(with_retries(attempt, request, stop, retry)) as events:
                async for event in events:
                    yield event

    def close(self) -> None:
        self._closed = True
        for stop in tuple(self._stops):
            stop.set("the model was closed")
