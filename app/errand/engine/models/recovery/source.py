"""A provider at one address, with what was learned about it and its open streams."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from errand.engine.core.cancel import CancelSignal, StopCause
from errand.engine.models.base import ModelProvider
from errand.engine.models.recovery.request_adaptation import LearnedLimits


class ActiveStreams:
    """Gives each stream a stop signal that follows the task's cancel signal and the closing of the source."""

    def __init__(self) -> None:
        self._stops: set[CancelSignal] = set()
        self._closed = False

    @contextmanager
    def track(self, cancel: CancelSignal) -> Generator[CancelSignal]:
        stop = CancelSignal()
        if self._closed:
            stop.set(StopCause("closed"))
        unsubscribe = cancel.subscribe(lambda: stop.set(cancel.cause))
        self._stops.add(stop)
        try:
            yield stop
        finally:
            unsubscribe()
            self._stops.discard(stop)

    def close(self) -> None:
        self._closed = True
        for stop in tuple(self._stops):
            stop.set(StopCause("closed"))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ModelSource:
    """`learned` is None if requests are sent unchanged; `estimates_usage` estimates usage that is not reported.

    `finds_tokens`: the server takes the tokens of its chat template for such wherever they stand, also in content.
    """

    provider: ModelProvider
    learned: LearnedLimits | None = None
    estimates_usage: bool = True
    address: str = ""
    finds_tokens: bool = False
    streams: ActiveStreams = field(default_factory=ActiveStreams)
