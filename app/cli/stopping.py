"""An orderly stop of the tasks a command started, asked for from a signal."""

import asyncio

from app.cli.terminal import Terminal
from app.client.connection import Connection
from app.protocol.tasks import TaskIdParams, TaskResult
from app.protocol.wire import TASK_STOP


class Stopper:
    """Knows the tasks to stop; `stop` returns at once, the engine's events tell how it goes."""

    def __init__(self, connection: Connection, terminal: Terminal) -> None:
        self._connection = connection
        self._terminal = terminal
        self._calls: list[asyncio.Task[TaskResult]] = []
        self.task_ids: list[str] = []

    def add(self, task_id: str) -> None:
        self.task_ids.append(task_id)

    def stop(self) -> None:
        self._terminal.note("errand: stopping; Ctrl+C again leaves at once, and the engine still stops it")
        self._calls = [
            asyncio.create_task(self._connection.call(TASK_STOP, TaskIdParams(task_id=task_id)))
            for task_id in self.task_ids
        ]
