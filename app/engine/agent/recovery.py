"""After a crash: what was under way when the last engine ended is marked as such, before anybody can see it."""

import msgspec

from app.engine.agent.task import is_working, moved
from app.engine.broadcast import EventLog
from app.engine.storage.database import Database
from app.engine.tools.processes import end_abandoned
from app.protocol.events import AskUpdate, TaskMessage, TaskUpdate


async def mark_interrupted(database: Database, log: EventLog) -> int:
    """Tasks become interrupted, their asks cancelled (a resumed task asks anew), half replies cut. The count of tasks.

    Processes that an engine that was killed left behind are ended.
    """
    tasks = [task for task in await database.tasks.active() if is_working(task)]
    for task in tasks:
        log.publish(
            TaskUpdate(
                task=msgspec.structs.replace(
                    moved(task, "interrupted"), stopping=False, current_tool=None, ask_id=None, activity=""
                )
            )
        )
        for ask in await database.asks.waiting((task.id,)):
            log.publish(AskUpdate(ask=msgspec.structs.replace(ask, status="cancelled")))
    for node in await database.nodes.streaming():
        log.publish(TaskMessage(node=msgspec.structs.replace(node, status="cut")))
    await log.flush()
    await end_abandoned(frozenset(task.id for task in tasks))
    return len(tasks)
