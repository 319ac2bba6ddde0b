"""Ctrl+C and SIGTERM: the first requests an orderly stop of the tasks, the next leaves at once."""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from errand.cli.terminal.terminal import Terminal
from errand.client.connection import Connection
from errand.client.errors import CallError, ConnectionLost
from errand.protocol.tasks.methods import TASK_STOP, TaskIdParams
from errand.text.translation import tr

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_CALL_TIMEOUT_S = 2.0


class Interrupts:
    """A context manager: the first interrupt calls `stop`, the second cancels the asyncio task that entered.

    Without `stop` the first one cancels. A prompt that reads Ctrl+C as a key calls `press` itself.
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
            # signal.signal and not loop.add_signal_handler, which Windows does not support.
            self._before[number] = signal.signal(number, self._signal_handler(loop))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _signal_handler(self, loop: asyncio.AbstractEventLoop) -> Callable[[int, FrameType | None], None]:
        def caught(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self.press)

        return caught

    def press(self) -> None:
        self.count += 1
        if self.count == 1 and self._stop is not None:
            self._stop()
        elif self._owner is not None:
            self._owner.cancel()


class OrderlyStop:
    """The tasks to stop; `stop` returns at once, the outcome arrives as events."""

    def __init__(self, connection: Connection, terminal: Terminal) -> None:
        self._connection = connection
        self._terminal = terminal
        self._calls: list[asyncio.Task[None]] = []
        self._is_asked_for = False
        self.task_ids: list[str] = []

    def add(self, task_id: str) -> None:
        """Add a task; it is stopped at once if a stop was requested while it started."""
        self.task_ids.append(task_id)
        if self._is_asked_for:
            self._send(task_id)

    def stop(self) -> None:
        self._is_asked_for = True
        self._terminal.note(tr("errand: stopping; press Ctrl+C again to leave now, the engine still stops the task"))
        for task_id in self.task_ids:
            self._send(task_id)

    async def wait_accepted(self) -> None:
        """Wait until the engine has accepted the stop, but not for the stop itself."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=_CALL_TIMEOUT_S)

    def _send(self, task_id: str) -> None:
        self._calls.append(asyncio.create_task(self._stop(task_id)))

    async def _stop(self, task_id: str) -> None:
        try:
            await self._connection.call(TASK_STOP, TaskIdParams(task_id=task_id))
        except CallError as error:
            if error.code != "illegal_move":  # it has ended meanwhile, as intended
                self._terminal.note(f"errand: {error}")
        except ConnectionLost:
            pass  # the task's follower sees it too
