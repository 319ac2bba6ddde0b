"""After a restart: marks interrupted tasks, restores their asks, resumes handed-over tasks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Set
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path

import msgspec

from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.agent.run.resume import last_reply, unknown_outcome_ask
from errand.engine.agent.run.task_state import ended_task, is_working, with_status
from errand.engine.agent.tasks.locks import AgentLocks, KeyedLock
from errand.engine.background import Background
from errand.engine.core.errors import EngineError, FolderNotAnswering, StorageError
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.engine.tools.argument_check import check_arguments
from errand.engine.tools.base import Access, GuardedTool
from errand.engine.tools.context import ShellContext, ToolContext
from errand.engine.tools.processes.termination import end_abandoned
from errand.engine.tools.registry import bind
from errand.engine.tools.results import ToolError
from errand.protocol.blocks import ToolCallBlock
from errand.protocol.events import AskUpdate, TaskMessage, TaskUpdate
from errand.protocol.tasks.task import Task, replace_fields
from errand.protocol.usage import Usage, add_usage
from errand.system.paths import Paths

# Enough nodes to contain an open turn's reply and the results of its calls.
_NEWEST = 1_000
# A folder that does not respond must not delay the engine's start.
_FOLDER_TIMEOUT_S = 2.0

_logger = logging.getLogger(__name__)

_KEY_IS_GONE = "it ran with a key that was given for it alone: resume it to go on with the stored one"


async def mark_interrupted(database: Database, log: EventLog, paths: Paths) -> None:
    """Publish interrupted tasks and cut replies; ask about tool calls with an unknown outcome.

    First ends processes left by a killed engine. A task that was stopping becomes cancelled.
    """
    active = await database.tasks.active()
    tasks = [task for task in active if is_working(task)]
    await end_abandoned(frozenset(task.id for task in tasks))
    cut = {(node.task_id, node.turn): node for node in await database.nodes.streaming()}
    stopped = {task.id for task in tasks if task.activity.stopping}
    for task in sorted(tasks, key=lambda task: task.origin.depth):  # a task before those below it
        interrupted = await _as_interrupted(task, cut.keys(), database)
        if task.activity.stopping or task.origin.parent_id in stopped:
            stopped.add(task.id)
            log.publish(TaskUpdate(task=ended_task(interrupted, "cancelled", "manual_stop")))
            continue
        log.publish(TaskUpdate(task=interrupted))
        await _ask_about_calls(interrupted, database, log, paths)
    for node in cut.values():
        log.publish(TaskMessage(node=msgspec.structs.replace(node, status="cut")))


async def restore_asks(database: Database, log: EventLog, asks: PendingAsks) -> None:
    """Restore the asks of tasks that can resume, after all writes are committed; cancel the others."""
    await log.flush()
    active = {task.id for task in await database.tasks.active()}
    for ask in await database.asks.waiting():
        if ask.task_id in active:
            asks.restore(ask)
        else:
            log.publish(AskUpdate(ask=msgspec.structs.replace(ask, status="cancelled")))


async def _as_interrupted(task: Task, cut: Set[tuple[str | None, int]], database: Database) -> Task:
    """Return the task with the usage of its finished model calls.

    A call that left no reply is repeated as the same turn.
    """
    usages = await database.turns.usages(task.id)
    open_turns = [turn.turn for turn in await database.turns.started(task.id)]
    is_lost = task.progress.step_count in open_turns and (task.id, task.progress.step_count) not in cut
    return replace_fields(
        with_status(task, "interrupted"),
        stopping=False,
        current_tool=None,
        calls=(),
        ask_id=None,
        detail="",
        awaits_server=False,
        usage=reduce(add_usage, usages, Usage()),
        step_count=task.progress.step_count - 1 if is_lost else task.progress.step_count,
    )


async def _ask_about_calls(task: Task, database: Database, log: EventLog, paths: Paths) -> None:
    """Ask about the calls of the last turn, except those an earlier engine asked about.

    The user sees the calls of the stored reply, which are the ones that would run again.
    """
    unfinished = [execution.started for execution in await database.executions.unfinished(task.id)]
    started_calls = {start.call_id: start for start in unfinished if start.turn == task.progress.step_count}
    agent = await database.agents.get(task.agent_id) if started_calls else None
    if agent is None or agent.head_id is None:
        return
    asks = await database.asks.page(task_ids=(task.id,))
    asked = {ask.unknown.execution_id for ask in asks if ask.unknown is not None}
    newest, _ = await database.nodes.branch(agent.head_id, _NEWEST)
    at = last_reply(newest, task.id)
    shell = ShellContext(task.progress.working_dir)
    context = ToolContext(task.id, Path(task.request.workspace), paths.outputs / task.id, shell=shell)
    tools = {tool.name: tool for tool in bind(context)}
    for block in newest[at].blocks if at is not None else ():
        started = started_calls.get(block.call_id) if isinstance(block, ToolCallBlock) else None
        if not isinstance(block, ToolCallBlock) or started is None or started.execution_id in asked:
            continue
        try:
            access = await in_workspace(
                context.workspace, partial(_access, tools.get(block.tool), block), _FOLDER_TIMEOUT_S
            )
        except FolderNotAnswering:
            return  # asked when the task is resumed
        if access is not None and access.has_effects:
            log.publish(AskUpdate(ask=unknown_outcome_ask(started, access, task)))


def _access(tool: GuardedTool | None, call: ToolCallBlock) -> Access | None:
    """None for a call that would be refused before it runs."""
    if tool is None or call.invalid is not None:
        return None
    try:
        arguments = check_arguments(tool.name, tool.parameters, tool.prepare_arguments(call.arguments))
        return tool.access(arguments)
    except ToolError:
        return None


class TaskResumption:
    """Resumes tasks that the end of an engine interrupted: after its restart, and when a person has answered."""

    def __init__(
        self,
        log: EventLog,
        database: Database,
        locks: AgentLocks,
        task_locks: KeyedLock,
        is_running: Callable[[str], bool],
        resume: Callable[[str], Awaitable[Task]],
        background: Background,
    ) -> None:
        self._log = log
        self._database = database
        self._locks = locks
        self._task_locks = task_locks
        self._is_running = is_running
        self._resume = resume
        self._background = background
        self._has_resumed = False

    def resume_earlier_tasks(self) -> None:
        """Resume tasks of an earlier engine. Call it once a client with its API keys is connected."""
        if not self._has_resumed:
            self._has_resumed = True
            self._background.start(self.resume_tasks(), name="resume after a restart")

    async def go_on_after_answer(self, task_id: str) -> None:
        """Resume an interrupted task that a person has answered: by its caller, if that was interrupted too.

        Returns at once; why a task cannot resume is its activity.
        """
        task = await self._interrupted(task_id)
        while task is not None and task.origin.parent_id is not None:
            parent = await self._interrupted(task.origin.parent_id)
            if parent is None:
                break
            task = parent
        if task is not None:
            self._background.start(self._resume_or_explain(task), name=f"resume {task.id} after an answer")

    async def _interrupted(self, task_id: str) -> Task | None:
        task = None if self._is_running(task_id) else await self._database.tasks.get(task_id)
        return task if task is not None and task.activity.status == "interrupted" else None

    async def resume_tasks(self) -> None:
        """Resume the tasks one after the other; a failure does not affect the others.

        Resumes nothing if the state of the earlier engine cannot be saved.
        """
        try:
            await self._log.flush()
        except StorageError:
            return
        active = await self._database.tasks.active()
        waiting = [
            task
            for task in active
            if task.activity.status == "interrupted" and (task.activity.resumes or task.activity.retry_at)
        ]
        ids = {task.id for task in waiting}
        for task in waiting:
            if task.origin.parent_id not in ids:  # a task resumes its sub-agents itself
                await asyncio.wait([self._background.start(self._resume_or_explain(task), f"resume {task.id}")])

    async def _resume_or_explain(self, task: Task) -> None:
        """Resume a task; if that is not possible, leave it to the person, with the reason."""
        if task.request.own_key:
            await self._leave_to_person(task.id, _KEY_IS_GONE)
            return
        try:
            await self._resume(task.id)
        except EngineError as error:
            _logger.warning("task %s is not resumed: %s", task.id, error)
            if not self._locks.is_closed:
                await self._leave_to_person(task.id, str(error))

    async def _leave_to_person(self, task_id: str, why: str) -> None:
        """Unless somebody has resumed or stopped it meanwhile, which may be why it was not resumed."""
        async with self._task_locks.lock(task_id):
            task = await self._database.tasks.get(task_id)
            if task is not None and task.activity.status == "interrupted":
                left = replace_fields(task, resumes=False, retry_at=None, detail=why)
                self._log.publish(TaskUpdate(task=left))
                with suppress(StorageError):
                    await self._log.flush()
