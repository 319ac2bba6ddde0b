"""The groups of a task that changed, as the event log keeps and sends them."""

import msgspec

from errand.protocol.base import Wire
from errand.protocol.tasks.groups import (
    Queued,
    TaskActivity,
    TaskBudget,
    TaskOptions,
    TaskOrigin,
    TaskOutcome,
    TaskProgress,
    TaskRequest,
    TodoItem,
)
from errand.protocol.tasks.task import Task


class TaskChange(Wire, frozen=True, kw_only=True, tag="taskChange", omit_defaults=True):
    """A task changed: each changed group whole, the others null. Follows a `taskUpdate` with the whole task."""

    task_id: str
    conversation_id: str
    request: TaskRequest | None = None
    origin: TaskOrigin | None = None
    options: TaskOptions | None = None
    budget: TaskBudget | None = None
    activity: TaskActivity | None = None
    progress: TaskProgress | None = None
    queue: tuple[Queued, ...] | None = None
    todo: tuple[TodoItem, ...] | None = None
    outcome: TaskOutcome | None = None

    def applied_to(self, task: Task) -> Task:
        """Return the task after the change."""
        groups = {name: getattr(self, name) for name in ALL_GROUPS}
        return msgspec.structs.replace(task, **{name: group for name, group in groups.items() if group is not None})


ALL_GROUPS = frozenset(field.name for field in msgspec.structs.fields(TaskChange) if not field.required)
_OWN = tuple(name for name in Task.__struct_fields__ if name not in ALL_GROUPS)


def changed_groups(before: Task, after: Task) -> frozenset[str] | None:
    """Return the groups in which two states of a task differ; None if they differ in more than groups."""
    if any(getattr(before, name) != getattr(after, name) for name in _OWN):
        return None
    return frozenset(name for name in ALL_GROUPS if getattr(before, name) != getattr(after, name))


def change_of(task: Task, groups: frozenset[str]) -> TaskChange:
    """Return the change that has these groups of a task."""
    return TaskChange(
        task_id=task.id, conversation_id=task.conversation_id, **{name: getattr(task, name) for name in groups}
    )
