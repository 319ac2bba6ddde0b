"""Ends the window in order when a signal asks for it: Qt's loop would not see one before its next event."""

import asyncio
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM)


def _noted(number: int, frame: FrameType | None) -> None:
    """The wake-up tells the loop; without a handler the process would end."""


@contextmanager
def on_signals(end: Callable[[], None]) -> Generator[None]:
    """Call `end` in the loop for Ctrl+C and SIGTERM while this lasts."""
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        loop.add_reader(near.fileno(), end)
        wakeup = signal.set_wakeup_fd(far.fileno())
        before = {number: signal.signal(number, _noted) for number in _ENDING}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            loop.remove_reader(near.fileno())
