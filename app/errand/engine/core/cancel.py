"""The cancel signal: one per task, set once, watched by the model stream, the tools and the loop."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from errand.system.listeners import Listeners


@dataclass(frozen=True, slots=True)
class StopCause:
    """The cause of a cancel signal. `by` is the user who stopped the task.

    `closed`: the model was closed; `cancelled`: the asyncio task of the run was cancelled, or nothing more is known.
    """

    kind: Literal["user", "limit", "engine_end", "closed", "cancelled"]
    by: str = ""


def stopped_by(user: str | None) -> StopCause:
    return StopCause("user", user or "")


class CancelSignal:
    """Set once and never cleared. `cause` is None until then."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._callbacks: Listeners[[]] = Listeners()
        self.cause: StopCause | None = None

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self, cause: StopCause | None = None) -> None:
        """Set the signal and run the callbacks at once, in order of subscription, even if one raises.

        A second call does nothing.
        """
        if self.is_set:
            return
        self.cause = cause or StopCause("cancelled")
        self._event.set()
        self._callbacks.notify()

    async def wait(self) -> None:
        await self._event.wait()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the signal is set (at once if it already is); returns the unsubscriber."""
        if self.is_set:
            callback()
            return lambda: None
        return self._callbacks.add(callback)
