"""A task, and the plan of each of its turns."""

import msgspec

from errand.protocol.base import JsonObject, Timestamp, Wire
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
from errand.protocol.usage import Usage, add_usage


class Task(Wire, frozen=True, kw_only=True):
    """One run of an agent on one request, with its full state by subject."""

    id: str
    """The id; a client may choose it."""
    conversation_id: str
    """The conversation in which the agent works."""
    agent_id: str
    """The agent."""
    started_at: Timestamp
    """When it was started."""
    request: TaskRequest
    """What it was started with."""
    activity: TaskActivity
    """What it does at the moment."""
    origin: TaskOrigin = TaskOrigin()
    """The task or the round of agents that it was started from."""
    options: TaskOptions = TaskOptions()
    """What a person can change while it runs."""
    budget: TaskBudget = TaskBudget()
    """Its limits."""
    progress: TaskProgress = TaskProgress()
    """What it has done so far."""
    queue: tuple[Queued, ...] = ()
    """Messages that the agent has not read yet, in reading order within each kind."""
    todo: tuple[TodoItem, ...] = ()
    """The agent's plan as it last wrote it; empty if it wrote none."""
    outcome: TaskOutcome = TaskOutcome()
    """How it ended."""
    owner: str = "local"
    """Whose task it is."""

    @property
    def total_usage(self) -> Usage:
        """The usage of the task and its sub-agents."""
        return add_usage(self.progress.usage, self.progress.delegated)


# The group of each field that is not the task's own.
GROUP_OF_FIELD = {
    name: field.name
    for field in msgspec.structs.fields(Task)
    if isinstance(field.type, type) and issubclass(field.type, Wire)
    for name in field.type.__struct_fields__
}


def replace_fields(task: Task, /, **changes: object) -> Task:
    """Return the task with other values of some fields, those of its groups among them; `structs.replace` for a task.

    A group without a change stays the same object.
    """
    replaced: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        replaced.setdefault(GROUP_OF_FIELD.get(name, ""), {})[name] = value
    own = replaced.pop("", {})
    groups = {name: msgspec.structs.replace(getattr(task, name), **fields) for name, fields in replaced.items()}
    return msgspec.structs.replace(task, **own, **groups)


class PlannedCall(Wire, frozen=True, kw_only=True):
    tool_name: str
    parameters: JsonObject


class AgentPlan(Wire, frozen=True, kw_only=True):
    """The plan of a turn: reasoning, tool calls, the question to the user, and whether the job is done."""

    task_id: str
    turn: int
    reasoning: str
    tool_calls: tuple[PlannedCall, ...]
    question: str | None
    is_complete: bool
