"""After a crash: what was under way when the last engine ended is marked as such, before anybody can see it."""

from collections.abc import Set
from functools import reduce

import msgspec

from app.engine.agent.asks import AskDesk
from app.engine.agent.live import added
from app.engine.agent.task import ended, is_working, moved
from app.engine.agent.unknown import ask_about
from app.engine.broadcast import EventLog
from app.engine.storage.database import Database
from app.engine.tools.processes import end_abandoned
from app.protocol.events import AskUpdate, TaskMessage, TaskUpdate
from app.protocol.tasks import Task
from app.protocol.usage import Usage


async def mark_interrupted(database: Database, log: EventLog) -> None:
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
        await _ask_about_calls(interrupted, database, log)
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


async def _ask_about_calls(task: Task, database: Database, log: EventLog) -> None:
    """Of the turn it was in. What an earlier engine has asked about is settled, or waits."""
    asks = await database.asks.page(task_ids=(task.id,))
    asked = {ask.unknown.execution_id for ask in asks if ask.unknown is not None}
    for execution in await database.executions.unfinished(task.id):
        started = execution.started
        if started.turn == task.step_count and not started.only_reads and started.execution_id not in asked:
            log.publish(AskUpdate(ask=ask_about(started, task)))
