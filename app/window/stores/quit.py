"""Ends everything when a person quits: all tasks, then the engine."""

import asyncio
from contextlib import suppress

from PySide6.QtCore import QObject, Signal

from app.protocol.tasks import TASK_STOP, Task, TaskIdParams
from app.window.stores.session import CALL_ERRORS
from app.window.stores.stores import Stores

_LONGEST_S = 3.0
_ENGINE_S = 2.0


class QuitStore(QObject):
    """`done` when the tasks have been stopped, or have had 3 s, and the engine was told to end."""

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
            async with asyncio.timeout(_LONGEST_S):
                await asyncio.gather(*(self._stop(task) for task in self.tasks.running()))
                while self.tasks.running():
                    self._changed.clear()
                    await self._changed.wait()
        with suppress(TimeoutError, *CALL_ERRORS):  # an engine that is gone needs no end
            async with asyncio.timeout(_ENGINE_S):
                await self._session.end_engine()
        self.done.emit()

    async def _stop(self, task: Task) -> None:
        with suppress(*CALL_ERRORS):  # it has ended meanwhile
            await self._session.call(TASK_STOP, TaskIdParams(task_id=task.id))

    def _on_task_update(self) -> None:
        self._changed.set()
        self.changed.emit()
