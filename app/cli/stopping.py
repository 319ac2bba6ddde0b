"""An orderly stop of the tasks a command started, asked for from a signal."""

import asyncio

from app.cli.terminal import Terminal
from app.client.connection import Connection
from app.client.errors import CallError, ConnectionLost
from app.protocol.tasks import TaskIdParams
from app.protocol.wire import TASK_STOP

_LONGEST_S = 2.0


class Stopper:
    """Knows the tasks to stop; `stop` returns at once, the engine's events tell how it goes."""

    def __init__(self, connection: Connection, terminal: Terminal) -> None:
        self._connection = connection
        self._terminal = terminal
        self._calls: list[asyncio.Task[None]] = []
        self._is_asked_for = False
        self.task_ids: list[str] = []

    def add(self, task_id: str) -> None:
        """A further task; it is stopped at once if the stop was asked for while it started."""
        self.task_ids.append(task_id)
        if self._is_asked_for:
            self._send(task_id)

    def stop(self) -> None:
        self._is_asked_for = True
        self._terminal.note("errand: stopping; Ctrl+C again leaves at once, and the engine still stops it")
        for task_id in self.task_ids:
            self._send(task_id)

    async def delivered(self) -> None:
        """Wait until the engine has taken the stop, but not for the stop itself."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=_LONGEST_S)

    def _send(self, task_id: str) -> None:
        self._calls.append(asyncio.create_task(self._stop(task_id)))

    async def _stop(self, task_id: str) -> None:
        try:
            await self._connection.call(TASK_STOP, TaskIdParams(task_id=task_id))
        except CallError as error:
            if error.code != "illegal_move":  # it has ended meanwhile, which is what was wanted
                self._terminal.note(f"errand: {error}")
        except ConnectionLost:
            pass  # whoever follows the task learns it too
