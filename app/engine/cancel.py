"""The cancel signal: one for each task, set once, watched by the model stream, the tools and the loop."""

import asyncio
from collections.abc import Callable


class CancelSignal:
    """Set once and never cleared. `reason` is a text for people."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._callbacks: list[Callable[[], None]] = []
        self.reason = ""

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self, reason: str = "") -> None:
        """Set the signal and run the callbacks at once, in order of subscription. A second call does nothing."""
        if self.is_set:
            return
        self.reason = reason
        self._event.set()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    async def wait(self) -> None:
        await self._event.wait()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the signal is set (at once when it is already); returns the unsubscriber."""
        if self.is_set:
            callback()
            return lambda: None
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return unsubscribe
