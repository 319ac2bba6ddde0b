"""Stored nodes, tasks and asks as the events that once brought them."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from errand.protocol.conversations import Node
from errand.protocol.engine import Snapshot
from errand.protocol.events import AgentUpdate, AskUpdate, EventRecord, TaskMessage, TaskUpdate
from errand.protocol.tasks.task import Task


def history(nodes: Sequence[Node], tasks: Iterable[Task]) -> Iterator[TaskMessage | TaskUpdate]:
    """Yield a branch as events, each ended task after the last of its messages; without those of sub-agents."""
    ended = {task.id: task for task in tasks if task.outcome.ended_at is not None and task.origin.parent_id is None}
    last = {ended[node.task_id].id: node.id for node in nodes if node.task_id in ended}
    for node in nodes:
        yield TaskMessage(node=node)
        # A message with another reply on this branch, or none, is not the end of its task.
        if node.task_id is not None and last.get(node.task_id) == node.id and node.role != "user":
            yield TaskUpdate(task=ended[node.task_id])


def snapshot_records(
    snapshot: Snapshot, epoch: str, task_id: str | None, at_work: Collection[str]
) -> Iterator[EventRecord]:
    """Yield a snapshot as equivalent events, with nodes before the end of their tasks.

    With a task come the tasks and asks of its sub-agents. Without one, tasks of other branches are left out unless
    they were `at_work` before.
    """
    task_ids, tasks = {task_id}, list[Task]()
    for task in sorted(snapshot.tasks, key=lambda task: task.origin.depth):  # a task before those below it
        if task_id is None or task.id == task_id or task.origin.parent_id in task_ids:
            task_ids.add(task.id)
            tasks.append(task)
    messages = tuple(history([node for node in snapshot.nodes if task_id in (None, node.task_id)], tasks))
    reported = {event.task.id for event in messages if isinstance(event, TaskUpdate)}
    others = [task for task in tasks if task.outcome.ended_at is not None and task.id not in reported]
    events = (
        *(AgentUpdate(agent=agent) for agent in snapshot.agents),
        *(TaskUpdate(task=task) for task in tasks if task.outcome.ended_at is None),
        *messages,
        *(AskUpdate(ask=ask) for ask in snapshot.asks if task_id is None or ask.task_id in task_ids),
        *(TaskUpdate(task=task) for task in others if task_id is not None or task.id in at_work),
    )
    for event in events:
        yield EventRecord(sequence=snapshot.sequence, epoch=epoch, event=event)
