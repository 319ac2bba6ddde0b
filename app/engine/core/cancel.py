"""The cancel signal: one per task, set once, watched by the model stream, the tools and the loop."""

import asyncio
from collections.abc import Callable

from app.listeners import Listeners


class CancelSignal:
    """Set once and never cleared. `reason` is a text for the user."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._callbacks = Listeners[Callable[[], None]]()
        self.reason = ""

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self, reason: str = "") -> None:
        """Set the signal and run the callbacks at once, in order of subscription, even if one raises.

        A second call does nothing.
        """
        if self.is_set:
            return
        self.reason = reason
        self._event.set()
        self._callbacks.tell(lambda callback: callback())

    async def wait(self) -> None:
        await self._event.wait()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the signal is set (at once if it already is); returns the unsubscriber."""
        if self.is_set:
            callback()
            return lambda: None
        return self._callbacks.add(callback)
