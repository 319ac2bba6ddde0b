"""The tasks that a client knows, and what can be done with one in its present state."""

from typing import Protocol

from errand.protocol.tasks.task import Task


class KnownTasks(Protocol):
    """The tasks that a client knows."""

    def get(self, task_id: str) -> Task | None: ...

    def of_agent(self, agent_id: str) -> Task | None:
        """Return the newest task of an agent."""
        ...


def is_working(task: Task) -> bool:
    """Return True while a task accepts messages: it has neither ended nor been interrupted."""
    return task.outcome.ended_at is None and task.activity.status != "interrupted"


def is_paused(task: Task) -> bool:
    """Return True if a person can let it go on: it was paused, also if the step at hand still runs, or it was
    interrupted.
    """
    return (
        task.outcome.ended_at is None
        and not task.activity.stopping
        and (task.activity.pausing or task.activity.status == "interrupted")
    )


def can_pause(task: Task) -> bool:
    return is_working(task) and not task.activity.stopping and not task.activity.pausing
