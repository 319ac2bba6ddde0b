"""The running tasks: one asyncio task each, from its start to its end or the engine's shutdown."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.agent.run.task_run import TaskRun
from errand.engine.agent.run.task_state import status_text
from errand.engine.agent.tasks.locks import AgentLocks
from errand.engine.agent.tasks.task_factory import StartedTask
from errand.engine.core.errors import IllegalMove, NotFound
from errand.engine.storage.database import Database
from errand.engine.storage.sql.reader import begin_patience
from errand.protocol.tasks.task import Task

_POLL_S = 0.02


class RunningTasks:
    """The tasks that run in this engine; calls `on_ended` when a task has ended and its agent is free."""

    def __init__(
        self,
        locks: AgentLocks,
        asks: PendingAsks,
        database: Database,
        on_ended: Callable[[Task], Awaitable[None]],
    ) -> None:
        self._locks = locks
        self._asks = asks
        self._health = database.health
        self._stored = database.tasks
        self._on_ended = on_ended
        self._runs: dict[str, TaskRun] = {}
        self._ended_events: dict[str, asyncio.Event] = {}
        self._resumes = False
        self._active_count = 0  # tasks, including those whose `on_ended` still runs
        self._idle = asyncio.Event()
        self._idle.set()
        self._health.subscribe(self._on_health)

    @property
    def all(self) -> tuple[TaskRun, ...]:
        return tuple(self._runs.values())

    def get(self, task_id: str) -> TaskRun | None:
        return self._runs.get(task_id)

    def below(self, task_id: str) -> tuple[TaskRun, ...]:
        """Return the running tasks of the sub-agents of a task, and of those below them."""
        own = tuple(run for run in self._runs.values() if run.task.origin.parent_id == task_id)
        return own + tuple(deeper for run in own for deeper in self.below(run.task.id))

    async def require(self, task_id: str) -> TaskRun:
        """Raises `NotFound` if there is no such task, `IllegalMove` if it is not running."""
        run = self._runs.get(task_id)
        if run is None:
            task = await self.stored_task(task_id)
            raise IllegalMove(f"The task is {status_text(task.activity.status)}; it is not under way.")
        return run

    async def find_task(self, task_id: str) -> Task | None:
        """Return the newest record of a task, running or not."""
        run = self._runs.get(task_id)
        return run.task if run is not None else await self._stored.get(task_id)

    async def stored_task(self, task_id: str) -> Task:
        """Return the stored record of a task. Raises `NotFound` if there is none."""
        task = await self._stored.get(task_id)
        if task is None:
            raise NotFound(f"There is no task {task_id!r}. `errand tasks` lists them.")
        return task

    def shown(self) -> tuple[Task, ...]:
        """Return the running tasks as shown to users: paused while storage is failing."""
        return tuple(run.shown for run in self._runs.values())

    def add(self, run: TaskRun) -> None:
        """Add a task, which runs from now on; `run_to_end` must follow."""
        self._runs[run.task.id] = run
        self._ended_events[run.task.id] = asyncio.Event()
        self._active_count += 1
        self._idle.clear()
        if self._locks.is_closed:
            run.interrupt(resumes=self._resumes)

    async def wait_ended(self, task_id: str) -> None:
        """Return when a task has ended and its `on_ended` is done; at once if it is not running."""
        event = self._ended_events.get(task_id)
        if event is not None:
            await event.wait()

    def hand_over(self) -> None:
        """Let the next engine resume the tasks that `close` will interrupt."""
        self._resumes = True

    async def close(self) -> None:
        """Interrupt all tasks and wait for the last one to end."""
        for run in tuple(self._runs.values()):
            run.interrupt(resumes=self._resumes)
        await self._idle.wait()

    async def drain(self, seconds: float) -> None:
        """Let each task finish its current step, for at most `seconds`."""
        for run in self._runs.values():
            run.finish_step()
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at:
            if all(run.is_between_steps for run in self._runs.values()):
                return
            await asyncio.sleep(_POLL_S)

    async def run_to_end(self, started: StartedTask) -> None:
        """Run a task that was added; return when it has ended and `on_ended` is done."""
        begin_patience()
        run = started.run
        try:
            await run.run(started.opening)
        finally:
            if run.task.outcome.ended_at is not None:
                self._asks.drop_task(run.task.id)
            self._locks.release(run.task.agent_id)
            del self._runs[run.task.id]
        try:
            await self._on_ended(run.task)
        finally:
            self._ended_events.pop(run.task.id).set()
            self._active_count -= 1
            if not self._active_count:
                self._idle.set()

    def _on_health(self) -> None:
        held = self._health.blocking_condition
        why = f"{held.text} {held.advice}" if held is not None else ""
        for run in self._runs.values():
            run.state.set_hold_reason(why)
