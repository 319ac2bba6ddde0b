"""A list of callbacks that isolates each callback from the exceptions of the others."""

import logging
from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")

_logger = logging.getLogger(__name__)


class Listeners(Generic[P]):
    """Callbacks in the order of their registration. An exception of one is logged and the next one is called."""

    def __init__(self) -> None:
        self._all: tuple[Callable[P, None], ...] = ()

    def __len__(self) -> int:
        return len(self._all)

    def add(self, listener: Callable[P, None]) -> Callable[[], None]:
        """Returns a function that removes the listener; calling it again does nothing."""
        self._all = (*self._all, listener)

        def remove() -> None:
            if listener in self._all:
                index = self._all.index(listener)
                self._all = self._all[:index] + self._all[index + 1 :]

        return remove

    def notify(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call each current listener."""
        for listener in self._all:
            try:
                listener(*args, **kwargs)
            except Exception:  # the one place for listeners: they are arbitrary code
                _logger.exception("a listener failed")
