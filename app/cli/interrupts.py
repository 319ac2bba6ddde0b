"""Ctrl+C and SIGTERM: the first asks for an orderly stop where there is one to ask for, the next leaves at once."""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While entered, the first interrupt calls `stop`, the second cancels the asyncio task that entered.

    Without `stop` the first one cancels already.

    Where a prompt reads Ctrl+C as a key it calls `press` itself.
    """

    def __init__(self, stop: Callable[[], None] | None) -> None:
        self._stop = stop
        self._owner: asyncio.Task[object] | None = None
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        self.count = 0

    def __enter__(self) -> Self:
        self._owner = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            # signal.signal and not loop.add_signal_handler: the loops of Windows have none.
            self._before[number] = signal.signal(number, self._caught(loop))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _caught(self, loop: asyncio.AbstractEventLoop) -> Callable[[int, FrameType | None], None]:
        def caught(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self.press)

        return caught

    def press(self) -> None:
        self.count += 1
        if self.count == 1 and self._stop is not None:
            self._stop()
        elif self._owner is not None:
            self._owner.cancel()
