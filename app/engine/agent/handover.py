"""After a restart: what an earlier engine handed over or left waiting goes on, or says why it cannot."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from app.engine.agent.claims import Claims
from app.engine.background import Background
from app.engine.broadcast import EventLog
from app.engine.errors import EngineError, StorageError
from app.engine.storage.database import Database
from app.protocol.events import TaskUpdate
from app.protocol.tasks import Task

_logger = logging.getLogger(__name__)

_KEY_IS_GONE = "it ran with a key that was given for it alone: resume it to go on with the stored one"


class Handover:
    def __init__(
        self,
        log: EventLog,
        database: Database,
        claims: Claims,
        resume: Callable[[str], Awaitable[Task]],
        background: Background,
    ) -> None:
        self._log = log
        self._database = database
        self._claims = claims
        self._resume = resume
        self._background = background

    async def take(self) -> None:
        """Resume them one after the other, whatever becomes of each.

        Nothing is resumed where what the earlier engine left cannot be saved.
        """
        try:
            await self._log.flush()
        except StorageError:
            return
        for task in await self._database.tasks.active():
            if task.status == "interrupted" and (task.resumes or task.retry_at):
                await asyncio.wait([self._background.start(self._go_on(task), f"resume {task.id}")])

    async def _go_on(self, task: Task) -> None:
        if task.own_key:
            self._leave_to_person(task, _KEY_IS_GONE)
            return
        try:
            await self._resume(task.id)
        except EngineError as error:
            _logger.warning("task %s is not resumed: %s", task.id, error)
            if not self._claims.is_closed:
                self._leave_to_person(task, str(error))

    def _leave_to_person(self, task: Task, why: str) -> None:
        task = msgspec.structs.replace(task, resumes=False, retry_at=None, activity=why)
        self._log.publish(TaskUpdate(task=task))
