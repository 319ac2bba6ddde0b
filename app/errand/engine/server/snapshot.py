"""The state of a scope at one point of the event log."""

from collections.abc import Iterable

import msgspec

from errand.engine.core.errors import NotFound
from errand.engine.server.session import ALL, Subscription
from errand.engine.storage.database import Database
from errand.engine.tools.call_display import with_displays
from errand.protocol.agents import first_agent
from errand.protocol.engine import Snapshot
from errand.protocol.tasks.task import Task, replace_fields

_RECENT_TASKS = 50
_CONVERSATIONS = 50
_NODES = 50


async def snapshot(database: Database, subscription: Subscription) -> Snapshot:
    """Read while the journal is paused at event `subscription.since`: see `subscribe` in `handlers/engine.py`.

    It has all tasks of the scope that have not ended: a replay may have only what changed of them.
    """
    if subscription.scope == ALL:
        return await _all_conversations(database, subscription.since)
    return await _one_conversation(database, subscription)


def with_running_tasks(made: Snapshot, running: Iterable[Task], why: str) -> Snapshot:
    """Return the stored state, with tasks in their in-memory state while nothing can be saved and tasks are paused."""
    by_id = {task.id: task for task in running}
    tasks = tuple(by_id.get(task.id) or _as_interrupted(task, why) for task in made.tasks)
    return msgspec.structs.replace(made, tasks=tasks)


def _as_interrupted(task: Task, why: str) -> Task:
    """Return the task as interrupted if an earlier engine left it, although that cannot be stored yet."""
    if task.outcome.ended_at is not None or task.activity.status == "interrupted":
        return task
    return replace_fields(
        task, status="interrupted", ask_id=None, current_tool=None, calls=(), detail=why, awaits_server=False
    )


async def _all_conversations(database: Database, sequence: int) -> Snapshot:
    recent = (await database.tasks.page(limit=_RECENT_TASKS)).tasks
    page = await database.conversations.page(limit=_CONVERSATIONS)
    return Snapshot(
        sequence=sequence,
        tasks=_merged(await database.tasks.active(), recent),
        asks=await database.asks.waiting(),
        conversations=page.conversations,
        grants=await database.grants.valid(),
    )


async def _one_conversation(database: Database, subscription: Subscription) -> Snapshot:
    conversation = await database.conversations.get(subscription.scope)
    if conversation is None:
        raise NotFound(f"There is no conversation {subscription.scope!r}.")
    recent = (await database.tasks.page(limit=_RECENT_TASKS, conversation_id=conversation.id)).tasks
    agents = await database.agents.list(conversation.id)
    agent = next((agent for agent in agents if agent.id == subscription.agent_id), first_agent(agents))
    # A tree without agents shows the newest branch.
    leaf_id = agent.head_id if agent is not None else await database.nodes.newest(conversation.id)
    if leaf_id is not None and subscription.detail == "full":
        nodes, has_more = await database.nodes.branch(leaf_id, limit=_NODES)
    else:
        nodes, has_more = (), False
    forks = await database.trees.forks(nodes)
    return Snapshot(
        sequence=subscription.since,
        tasks=_merged(await database.tasks.active(conversation.id), recent),
        asks=tuple(ask for ask in await database.asks.waiting() if ask.conversation_id == conversation.id),
        conversations=(conversation,),
        agents=agents,
        nodes=tuple(map(with_displays, nodes)),
        has_more_nodes=has_more,
        forks=forks,
    )


def _merged(active: tuple[Task, ...], recent: tuple[Task, ...]) -> tuple[Task, ...]:
    """Newest first, without duplicates."""
    seen = {task.id for task in recent}
    return tuple(sorted((*recent, *(task for task in active if task.id not in seen)), key=_started, reverse=True))


def _started(task: Task) -> tuple[str, str]:
    return task.started_at.isoformat(), task.id
