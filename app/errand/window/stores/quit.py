"""Stops all tasks, then the engine, when the user quits."""

import asyncio
from contextlib import suppress

from PySide6.QtCore import QObject, Signal

from errand.protocol.tasks.methods import TASK_STOP, TaskIdParams
from errand.protocol.tasks.task import Task
from errand.window.stores.session import CALL_ERRORS
from errand.window.stores.stores import Stores

_QUIT_TIMEOUT_S = 3.0
_ENGINE_S = 2.0


class QuitStore(QObject):
    """Emits `done` when all tasks have ended, or after 3 s, and the engine was told to shut down."""

    changed = Signal()
    done = Signal()

    def __init__(self, stores: Stores, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tasks = stores.tasks
        self._session = stores.session
        self._changed = asyncio.Event()
        stores.tasks.taskUpdate.connect(self._on_task_update)

    def end_all(self) -> None:
        self._session.spawn(self._end_all())

    async def _end_all(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_QUIT_TIMEOUT_S):
                await asyncio.gather(*(self._stop(task) for task in self.tasks.running()))
                while self.tasks.running():
                    self._changed.clear()
                    await self._changed.wait()
        with suppress(TimeoutError, *CALL_ERRORS):  # the engine has ended already
            async with asyncio.timeout(_ENGINE_S):
                await self._session.end_engine()
        self.done.emit()

    async def _stop(self, task: Task) -> None:
        with suppress(*CALL_ERRORS):  # the task has ended already
            await self._session.call(TASK_STOP, TaskIdParams(task_id=task.id))

    def _on_task_update(self) -> None:
        self._changed.set()
        self.changed.emit()
