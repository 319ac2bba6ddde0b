"""After a crash: what was under way when the last engine ended is marked as such, before anybody can see it."""

from collections.abc import Set
from functools import partial, reduce
from pathlib import Path

import msgspec

from app.engine.agent.asks import AskDesk
from app.engine.agent.live import added
from app.engine.agent.open_turn import last_reply
from app.engine.agent.task import ended, is_working, moved
from app.engine.agent.unknown import ask_about, has_effects
from app.engine.broadcast import EventLog
from app.engine.errors import FolderNotAnswering
from app.engine.storage.database import Database
from app.engine.tools.base import Access, Tool, ToolError, Workplace
from app.engine.tools.processes import end_abandoned
from app.engine.tools.registry import bind
from app.engine.tools.schema import check_arguments
from app.engine.workspace_threads import in_workspace
from app.paths import Paths
from app.protocol.blocks import ToolCallBlock
from app.protocol.events import AskUpdate, TaskMessage, TaskUpdate
from app.protocol.tasks import Task
from app.protocol.usage import Usage

# The results of an open turn's calls, and its reply above them, stand among so many nodes.
_NEWEST = 1_000
# An engine that starts does not wait long for a folder that does not answer.
_LOOK_S = 2.0


async def mark_interrupted(database: Database, log: EventLog, paths: Paths) -> None:
    """Publish that tasks are interrupted and half replies cut; calls that were under way are asked about.

    Processes that an engine that was killed left behind are ended first. A task that was being stopped is stopped: that
    was said already.
    """
    active = await database.tasks.active()
    tasks = [task for task in active if is_working(task)]
    await end_abandoned(frozenset(task.id for task in tasks))
    cut = {(node.task_id, node.turn): node for node in await database.nodes.streaming()}
    for task in tasks:
        interrupted = await _interrupted(task, cut.keys(), database)
        if task.stopping:
            log.publish(TaskUpdate(task=ended(interrupted, "cancelled", "manual_stop")))
            continue
        log.publish(TaskUpdate(task=interrupted))
        await _ask_about_calls(interrupted, database, log, paths)
    for node in cut.values():
        log.publish(TaskMessage(node=msgspec.structs.replace(node, status="cut")))


async def keep_asks(database: Database, log: EventLog, desk: AskDesk) -> None:
    """Once all that is on record: what waits for tasks that can go on waits on. For others nobody asks any more."""
    await log.flush()
    active = {task.id: task for task in await database.tasks.active()}
    for ask in await database.asks.waiting():
        if ask.task_id in active:
            desk.keep(ask, active[ask.task_id].workspace)
        else:
            log.publish(AskUpdate(ask=msgspec.structs.replace(ask, status="cancelled")))


async def _interrupted(task: Task, cut: Set[tuple[str | None, int]], database: Database) -> Task:
    """With what it took up to its last finished model call. One of which nothing came is made again, as that turn."""
    usages = await database.turns.usages(task.id)
    open_turns = [turn.turn for turn in await database.turns.started(task.id)]
    is_lost = task.step_count in open_turns and (task.id, task.step_count) not in cut
    return msgspec.structs.replace(
        moved(task, "interrupted"),
        stopping=False,
        current_tool=None,
        ask_id=None,
        activity="",
        usage=reduce(added, usages, Usage()),
        step_count=task.step_count - 1 if is_lost else task.step_count,
    )


async def _ask_about_calls(task: Task, database: Database, log: EventLog, paths: Paths) -> None:
    """Of the turn it was in. What an earlier engine has asked about is settled, or waits.

    A person is shown the calls of the stored reply, which are what would run again.
    """
    unfinished = [one.started for one in await database.executions.unfinished(task.id)]
    begun = {one.call_id: one for one in unfinished if one.turn == task.step_count}
    agent = await database.agents.get(task.agent_id) if begun else None
    if agent is None or agent.head_id is None:
        return
    asks = await database.asks.page(task_ids=(task.id,))
    asked = {ask.unknown.execution_id for ask in asks if ask.unknown is not None}
    newest, _ = await database.nodes.branch(agent.head_id, _NEWEST)
    at = last_reply(newest, task.id)
    workplace = Workplace(task.id, Path(task.workspace), paths.outputs / task.id, environment={})
    tools = {tool.name: tool for tool in bind(workplace)}
    for block in newest[at].blocks if at is not None else ():
        started = begun.get(block.call_id) if isinstance(block, ToolCallBlock) else None
        if not isinstance(block, ToolCallBlock) or started is None or started.execution_id in asked:
            continue
        try:
            access = await in_workspace(workplace.workspace, partial(_access, tools.get(block.tool), block), _LOOK_S)
        except FolderNotAnswering:
            return  # who resumes the task is asked then
        if access is not None and has_effects(access):
            log.publish(AskUpdate(ask=ask_about(started, access, task)))


def _access(tool: Tool | None, call: ToolCallBlock) -> Access | None:
    """None for a call that would be refused before it runs."""
    if tool is None or call.invalid is not None:
        return None
    try:
        arguments = check_arguments(tool.name, tool.parameters, tool.prepare_arguments(call.arguments))
        return tool.access(arguments)
    except ToolError:
        return None
