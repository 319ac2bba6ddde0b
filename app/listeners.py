"""Who wants to be told of something: each is told, whatever another one raises."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

L = TypeVar("L")

_logger = logging.getLogger(__name__)


class Listeners(Generic[L]):
    """In the order in which they came. What one raises is a defect of its own: it is logged, the next one is told."""

    def __init__(self) -> None:
        self._all: tuple[L, ...] = ()

    def __len__(self) -> int:
        return len(self._all)

    def add(self, listener: L) -> Callable[[], None]:
        """Returns what takes it out again, once or more often."""
        self._all = (*self._all, listener)

        def remove() -> None:
            if listener in self._all:
                place = self._all.index(listener)
                self._all = self._all[:place] + self._all[place + 1 :]

        return remove

    def tell(self, call: Callable[[L], None]) -> None:
        """Make `call` with each that is there now."""
        for listener in self._all:
            try:
                call(listener)
            except Exception:  # the one place for listeners: they are anyone's code
                _logger.exception("a listener failed")
